//! `Claim`: what must hold of sizes; `Guard`: a claim with the line that needs it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::location::SourceLocation;
use crate::value::dim::Dim;

/// What must hold of the sizes of a run.
///
/// ```
/// use fx_core::shapes::Claim;
/// let claim: Claim = "(h + 2) % 4 == 0".parse()?;
/// assert_eq!(claim.to_string(), "(h + 2) % 4 == 0");
/// assert!(claim.holds(|_| Some(6))? && !claim.holds(|_| Some(7))?);
/// assert_eq!("2*w > h".parse::<Claim>()?.to_string(), "2*w > h");
/// assert_eq!("-past - t >= -64".parse::<Claim>()?.to_string(), "past + t <= 64");
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Claim {
    /// Both are equal.
    Equal(Dim, Dim),
    /// The size is a multiple of the number.
    Multiple(Dim, Dim),
    /// The size is at least the number.
    AtLeast(Dim, i64),
    /// The size is at most the number.
    AtMost(Dim, i64),
}

impl Claim {
    /// Whether it holds of the values of the symbols.
    ///
    /// # Errors
    /// Returns an error if a symbol has no value, something is divided by zero, or a number does
    /// not fit an `i64`.
    pub fn holds(&self, of: impl Fn(&str) -> Option<i64>) -> Result<bool> {
        Ok(match self {
            Claim::Equal(a, b) => a.eval(&of)? == b.eval(&of)?,
            Claim::Multiple(a, by) => Dim::from(a.eval(&of)?).rem(by.eval(&of)?)? == 0,
            Claim::AtLeast(a, least) => a.eval(&of)? >= *least,
            Claim::AtMost(a, most) => a.eval(&of)? <= *most,
        })
    }

    /// The sizes in it.
    pub(crate) fn dims(&self) -> impl Iterator<Item = &Dim> {
        let (a, b) = match self {
            Claim::Equal(a, b) | Claim::Multiple(a, b) => (a, Some(b)),
            Claim::AtLeast(a, _) | Claim::AtMost(a, _) => (a, None),
        };
        std::iter::once(a).chain(b)
    }

    /// With other sizes in place of symbols.
    pub(crate) fn with(&self, of: impl Fn(&str) -> Option<Dim>) -> Result<Self> {
        Ok(match self {
            Claim::Equal(a, b) => Claim::Equal(a.with(&of)?, b.with(&of)?),
            Claim::Multiple(a, b) => Claim::Multiple(a.with(&of)?, b.with(&of)?),
            Claim::AtLeast(a, least) => Claim::AtLeast(a.with(&of)?, *least),
            Claim::AtMost(a, most) => Claim::AtMost(a.with(&of)?, *most),
        })
    }

    /// Whether it holds, if numbers alone decide it.
    pub(crate) fn decided(&self) -> Option<bool> {
        let is_number = |dim: &Dim| dim.as_number().is_some();
        match self.dims().all(is_number) {
            true => self.holds(|_| None).ok(),
            false => None,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Equal(a, b) => write!(f, "{a} == {b}"),
            Claim::Multiple(a, by) => {
                write!(f, "{} % {} == 0", in_parentheses(a), in_parentheses(by))
            }
            Claim::AtLeast(a, least) => f.write_str(&comparison(a, ">=", *least)),
            Claim::AtMost(a, most) => f.write_str(&comparison(a, "<=", *most)),
        }
    }
}

/// `size >= number` or `size <= number` without a negative sign where it can be: `past + t <= 64` for
/// `-past - t >= -64`, and `2*w > h` for `2*w - h >= 1`.
fn comparison(size: &Dim, symbol: &str, number: i64) -> String {
    // `n >= 3` for `n - 3 >= 0`.
    let shift = size.eval(|_| Some(0)).unwrap_or(0);
    let shifted = number.checked_sub(shift).zip((size - shift).ok());
    let (number, size) = shifted.unwrap_or_else(|| (number, size.clone()));
    let Ok((plus, minus)) = size.sides() else {
        return format!("{size} {symbol} {number}");
    };
    match (symbol, number) {
        _ if minus == 0 => format!("{size} {symbol} {number}"),
        (">=", number) if plus == 0 => format!("{minus} <= {}", -i128::from(number)),
        ("<=", number) if plus == 0 => format!("{minus} >= {}", -i128::from(number)),
        (symbol, 0) => format!("{plus} {symbol} {minus}"),
        (">=", 1) => format!("{plus} > {minus}"),
        ("<=", -1) => format!("{plus} < {minus}"),
        (symbol, number) => format!("{size} {symbol} {number}"),
    }
}

fn in_parentheses(dim: &Dim) -> String {
    let text = dim.to_string();
    match text.contains(['*', ' ']) {
        true => format!("({text})"),
        false => text,
    }
}

/// Reads a comparison of two sizes: `==`, `>=`, `<=`, `>` or `<`. A claim about a remainder is
/// written `h % 32 == 0`.
impl FromStr for Claim {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let comparison = ["==", ">=", "<=", ">", "<"].into_iter().find_map(|symbol| {
            let (left, right) = text.split_once(symbol)?;
            Some((left, symbol, right))
        });
        let Some((left, symbol, right)) = comparison else {
            return Err(Error::msg(format_args!(
                "`{text}` compares nothing: write a constraint as `h % 32 == 0`, `n <= 64` or `h == 2*w`"
            )));
        };
        let (a, b): (Dim, Dim) = (left.parse()?, right.parse()?);
        if symbol == "==" {
            return match (a.as_remainder(), b.as_number()) {
                (Some((of, by)), Some(0)) => Ok(Claim::Multiple(of, by.into())),
                _ => Ok(Claim::Equal(a, b)),
            };
        }
        // One side is a number.
        let (size, number) = match (a.as_number(), b.as_number()) {
            (_, Some(number)) => (a, number),
            (Some(number), None) => return reflected(symbol, b, number),
            (None, None) => ((a - b)?, 0),
        };
        compared(symbol, size, number)
    }
}

fn compared(symbol: &str, size: Dim, number: i64) -> Result<Claim> {
    let next = |by: i64| {
        let next = number.checked_add(by);
        next.ok_or_else(|| Error::msg(format_args!("{number} is too large for a constraint")))
    };
    Ok(match symbol {
        ">=" => Claim::AtLeast(size, number),
        ">" => Claim::AtLeast(size, next(1)?),
        "<=" => Claim::AtMost(size, number),
        _ => Claim::AtMost(size, next(-1)?),
    })
}

/// `4 <= n` as `n >= 4`.
fn reflected(symbol: &str, size: Dim, number: i64) -> Result<Claim> {
    let symbol = match symbol {
        ">=" => "<=",
        ">" => "<",
        "<=" => ">=",
        _ => ">",
    };
    compared(symbol, size, number)
}

/// A claim, with the line of the user's source that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guard {
    /// What must hold.
    pub claim: Claim,
    /// The line of the node that needs it, or of the constraint.
    pub location: Option<SourceLocation>,
    /// The path of the module of that node; empty for the root.
    pub module: String,
}

impl Guard {
    /// The place, in parentheses behind a space; empty if it is not known.
    pub(super) fn place(&self) -> String {
        match (&self.location, &*self.module) {
            (Some(at), "") => format!(" ({}:{})", at.file, at.line),
            (Some(at), module) => format!(" ({}:{}, in {module})", at.file, at.line),
            (None, _) => String::new(),
        }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.place() {
            "" => self.claim.fmt(f),
            place => write!(f, "{}  {place}", self.claim),
        }
    }
}
