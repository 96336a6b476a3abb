//! `ShapeEnv`: what is known of the symbols of sizes, and what was assumed of them.
//!
//! Invariant: a question that the ranges of the symbols do not decide is answered with yes, and the
//! answer is a guard.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::location::SourceLocation;
use crate::value::dim::Dim;

/// What must hold of the sizes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Claim {
    /// Both are equal.
    Equal(Dim, Dim),
    /// The size is a multiple of the number.
    Multiple(Dim, Dim),
    /// The size is at least the number.
    AtLeast(Dim, i64),
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
        })
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Equal(a, b) => write!(f, "{a} == {b}"),
            Claim::Multiple(a, by) => match by.as_number() {
                Some(by) => write!(f, "{} % {by} == 0", in_parentheses(a)),
                None => write!(f, "{} % {} == 0", in_parentheses(a), in_parentheses(by)),
            },
            Claim::AtLeast(a, least) => write!(f, "{a} >= {least}"),
        }
    }
}

fn in_parentheses(dim: &Dim) -> String {
    let text = dim.to_string();
    match text.contains(' ') {
        true => format!("({text})"),
        false => text,
    }
}

/// A claim, with the line of the user's source that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guard {
    /// What must hold.
    pub claim: Claim,
    /// The line of the node that needs it.
    pub location: Option<SourceLocation>,
    /// The path of the module of that node; empty for the root.
    pub module: String,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.claim)?;
        match (&self.location, &*self.module) {
            (Some(at), "") => write!(f, "   ({}:{})", at.file, at.line),
            (Some(at), module) => write!(f, "   ({}:{}, in {module})", at.file, at.line),
            (None, _) => Ok(()),
        }
    }
}

/// The symbols of sizes, and the claims about them that shapes rest on.
#[derive(Debug, Clone, Default)]
pub struct ShapeEnv {
    /// The smallest and the largest value of each symbol.
    symbols: IndexMap<Arc<str>, (i64, Option<i64>), FxBuildHasher>,
    guards: Vec<Guard>,
    /// Claims about sizes that depend on data.
    assumptions: Vec<Guard>,
    claimed: FxHashSet<Claim>,
    /// The symbols of such sizes.
    data: FxHashSet<Arc<str>>,
    fresh: usize,
    /// The place of the node whose shape is asked for.
    pub(super) location: Option<SourceLocation>,
    pub(super) module: String,
}

impl ShapeEnv {
    /// The claims, in the order of the nodes that need them.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The claims about sizes that depend on data, which no input decides.
    pub fn assumptions(&self) -> &[Guard] {
        &self.assumptions
    }

    /// Whether a size is a symbol of its own, for what depends on data.
    pub(super) fn is_data(&self, dim: &Dim) -> bool {
        dim.as_symbol().is_some_and(|name| self.data.contains(name))
    }

    /// The symbols, with the smallest and the largest value that each can have.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, i64, Option<i64>)> {
        let symbols = self.symbols.iter();
        symbols.map(|(name, (low, high))| (&**name, *low, *high))
    }

    /// Makes the symbols of a size known, each at least 1.
    pub(super) fn declare(&mut self, dim: &Dim) {
        for name in dim.symbols() {
            self.symbols.entry(name).or_insert((1, None));
        }
    }

    /// A new symbol for a size that depends on data.
    ///
    /// # Errors
    /// The name is free, so that no error is returned.
    pub fn fresh(&mut self, low: i64, high: Option<i64>) -> Result<Dim> {
        loop {
            let name = format!("u{}", self.fresh);
            self.fresh += 1;
            if !self.symbols.contains_key(&*name) {
                let name: Arc<str> = name.into();
                self.symbols.insert(name.clone(), (low, high));
                self.data.insert(name.clone());
                return Dim::symbol(&name);
            }
        }
    }

    /// The smallest and the largest value of a size; `None` is no limit.
    pub fn bounds(&self, dim: &Dim) -> (Option<i64>, Option<i64>) {
        dim.bounds(|name| match self.symbols.get(name) {
            Some((low, high)) => (Some(*low), *high),
            None => (None, None),
        })
    }

    /// Whether two sizes are equal: known, or assumed from now on.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn same(&mut self, a: &Dim, b: &Dim) -> Result<bool> {
        if a == b {
            return Ok(true);
        }
        let difference = (a - b)?;
        match self.bounds(&difference) {
            (Some(low), _) if low > 0 => return Ok(false),
            (_, Some(high)) if high < 0 => return Ok(false),
            _ => {}
        }
        for difference in [&difference, &(&difference * -1)?] {
            if let Some((of, by)) = difference.as_remainder() {
                self.claim(Claim::Multiple(of, by.into()));
                return Ok(true);
            }
        }
        let (symbolic, other) = match a.as_number() {
            Some(_) => (b, a),
            None => (a, b),
        };
        self.claim(Claim::Equal(symbolic.clone(), other.clone()));
        Ok(true)
    }

    /// The whole quotient: known, or assumed to be whole from now on.
    ///
    /// # Errors
    /// Returns an error if both are numbers and there is no whole quotient, the divisor is zero, or
    /// a number does not fit an `i64`.
    pub fn divided(&mut self, a: &Dim, by: &Dim) -> Result<Dim> {
        if let Some(quotient) = a.exact_div(by)? {
            return Ok(quotient);
        }
        let quotient = a.div(by)?;
        // Factors of both do not matter.
        let (a, by) = without_common(a, by)?;
        if a.as_number().is_some() && by.as_number().is_some() {
            return Err(Error::msg(format_args!("{a} is no multiple of {by}")));
        }
        self.claim(Claim::Multiple(a, by));
        Ok(quotient)
    }

    /// Whether a size is at least a number: known, or assumed from now on.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn at_least(&mut self, dim: &Dim, least: i64) -> Result<bool> {
        match self.bounds(dim) {
            (Some(low), _) if low >= least => return Ok(true),
            (_, Some(high)) if high < least => return Ok(false),
            _ => {}
        }
        let (dim, least) = dim.at_least(least)?;
        if let Some(name) = dim.as_symbol()
            && let Some((low, _)) = self.symbols.get_mut(name)
        {
            *low = least.max(*low);
            // The strongest of the claims stays.
            self.guards
                .retain(|guard| !matches!(&guard.claim, Claim::AtLeast(of, _) if *of == dim));
        }
        self.claim(Claim::AtLeast(dim, least));
        Ok(true)
    }

    /// Removes the claims that follow from others: `h // 2 == 2*(h // 4)` from `h % 4 == 0`.
    pub(super) fn without_implied(&mut self) -> Result<()> {
        let mut multiples: FxHashMap<Arc<str>, Dim> = FxHashMap::default();
        for guard in &self.guards {
            if let Claim::Multiple(of, by) = &guard.claim
                && let (Some(name), Some(number)) = (of.as_symbol(), by.as_number())
                && multiples
                    .get(name)
                    .and_then(Dim::as_number)
                    .is_none_or(|known| number % known == 0)
            {
                multiples.insert(name.into(), by.clone());
            }
        }
        if multiples.is_empty() {
            return Ok(());
        }
        let of = |name: &str| {
            let by = multiples.get(name)?;
            Dim::symbol(name).and_then(|symbol| symbol * by).ok()
        };
        let mut kept = Vec::with_capacity(self.guards.len());
        for guard in std::mem::take(&mut self.guards) {
            let is_implied = match &guard.claim {
                Claim::Equal(a, b) => a.with(of)? == b.with(of)?,
                Claim::Multiple(a, by) => {
                    let is_own = a.as_symbol().and_then(|name| multiples.get(name)) == Some(by);
                    !is_own && a.with(of)?.exact_div(&by.with(of)?)?.is_some()
                }
                Claim::AtLeast(..) => false,
            };
            if !is_implied {
                kept.push(guard);
            }
        }
        self.guards = kept;
        Ok(())
    }

    fn claim(&mut self, claim: Claim) {
        if !self.claimed.insert(claim.clone()) {
            return;
        }
        let (a, b) = match &claim {
            Claim::Equal(a, b) | Claim::Multiple(a, b) => (a, Some(b)),
            Claim::AtLeast(a, _) => (a, None),
        };
        let mut symbols = a.symbols();
        symbols.extend(b.into_iter().flat_map(Dim::symbols));
        let is_data = symbols.iter().any(|name| self.data.contains(name));
        let guard = Guard {
            claim,
            location: self.location.clone(),
            module: self.module.clone(),
        };
        match is_data {
            true => self.assumptions.push(guard),
            false => self.guards.push(guard),
        }
    }
}

/// `m` and 4 for `2*m*n` and `8*n`.
fn without_common(a: &Dim, by: &Dim) -> Result<(Dim, Dim)> {
    let (mut a, mut by) = (a.clone(), by.clone());
    let number = number_of(&by)?;
    if let Some(factor) = by.exact_div(&number)?
        && let Some(rest) = a.exact_div(&factor)?
    {
        (a, by) = (rest, number);
    }
    for prime in [2, 3, 5, 7, 11, 13] {
        while let Some(less) = by.exact_div(&prime.into())?
            && let Some(rest) = a.exact_div(&prime.into())?
        {
            (a, by) = (rest, less);
        }
    }
    Ok((a, by))
}

/// The number that a product of symbols is multiplied by.
fn number_of(by: &Dim) -> Result<Dim> {
    let ones = by.with(|_| Some(Dim::known(1)))?;
    Ok(match ones.as_number() {
        Some(number) if number > 0 => ones,
        _ => Dim::known(1),
    })
}
