//! `Dim`: the size of a tensor dim, which is a number or becomes known only when a graph runs.
//!
//! Invariant: a size whose value is a number is that number, whatever it was computed from.

use std::collections::BTreeSet;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

use super::size_expr::{Atom, SizeExpr, SizeRange, rounded_down};
use crate::error::{Error, Result};

/// A tensor size: a known number, or an expression over named symbols: sums, products, quotients
/// and remainders rounded down, minima and maxima.
///
/// Expressions are kept in a normal form, so that sizes that are computed in different ways can be
/// compared. They print as people write them, and are parsed back. A size is negative only on the
/// way to another one.
///
/// ```
/// use fx_core::value::Dim;
/// let (batch, h) = (Dim::symbol("batch")?, Dim::symbol("h")?);
/// let rows = (&h + 15)?.div(16)?;
/// assert_eq!(rows.to_string(), "(h + 15) // 16");
/// assert_eq!((&batch * &rows)?, "batch*((h + 15) // 16)".parse::<Dim>()?);
/// // Two strided layers are one quotient.
/// assert_eq!((&h + 1)?.div(2)?.div(2)?, (&h + 1)?.div(4)?);
/// assert_eq!((&h - &h)?, 0);
/// let size = rows.eval(|name| (name == "h").then_some(40))?;
/// assert_eq!(size, 3);
/// assert_eq!((rows.as_known(), Dim::known(3).as_known()), (None, Some(3)));
/// # Ok::<(), fx_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Size);

/// The content of a dim.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Size {
    Known(i64),
    /// Not a number.
    Expr(Arc<SizeExpr>),
}

/// The outermost step of a size: [`Dim::step`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DimStep {
    /// A number.
    Known(i64),
    /// A name.
    Symbol(Arc<str>),
    /// A sum.
    Sum(Vec<Dim>),
    /// A product.
    Product(Vec<Dim>),
    /// A quotient, rounded down.
    Quotient(Dim, Dim),
    /// The smallest.
    Min(Vec<Dim>),
    /// The largest.
    Max(Vec<Dim>),
}

impl Dim {
    /// How the size is computed: its outermost step, for who writes sizes in another language.
    ///
    /// ```
    /// use fx_core::value::{Dim, DimStep};
    /// let size: Dim = "2*(n // 3)".parse()?;
    /// let DimStep::Product(factors) = size.step() else { unreachable!() };
    /// assert_eq!(factors[0], 2);
    /// assert_eq!(factors[1].step(), DimStep::Quotient(Dim::symbol("n")?, 3.into()));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn step(&self) -> DimStep {
        let expr = match &self.0 {
            Size::Known(size) => return DimStep::Known(*size),
            Size::Expr(expr) => expr,
        };
        let all = |of: &[SizeExpr]| of.iter().cloned().map(Dim::of).collect();
        match expr.as_atom() {
            Some(Atom::Symbol(name)) => return DimStep::Symbol(name.clone()),
            Some(Atom::Quotient(a, b)) => {
                return DimStep::Quotient(Dim::of(a.clone()), Dim::of(b.clone()));
            }
            Some(Atom::Min(of)) => return DimStep::Min(all(of)),
            Some(Atom::Max(of)) => return DimStep::Max(all(of)),
            None => {}
        }
        let term = |product: &[Atom], count: i64| Dim::of(SizeExpr::term(product.to_vec(), count));
        match expr.terms() {
            [(product, count)] => {
                let factors = product
                    .iter()
                    .map(|atom| term(std::slice::from_ref(atom), 1));
                let count = (*count != 1).then_some(Dim(Size::Known(*count)));
                DimStep::Product(count.into_iter().chain(factors).collect())
            }
            terms => DimStep::Sum(terms.iter().map(|(p, count)| term(p, *count)).collect()),
        }
    }

    /// A known size, at most `i64::MAX`.
    pub const fn known(size: usize) -> Self {
        match size > i64::MAX as usize {
            true => Dim(Size::Known(i64::MAX)),
            false => Dim(Size::Known(size as i64)),
        }
    }

    /// A size with a name, which a run knows.
    ///
    /// # Errors
    /// Returns an error if the name is not letters, digits and `_`, or begins with a digit.
    pub fn symbol(name: &str) -> Result<Self> {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name || matches!(name, "min" | "max") {
            return Err(Error::expected(
                "a name of a size, such as `batch`",
                format_args!("`{}`", crate::text::Escaped(name)),
            ));
        }
        Ok(Dim(Size::Expr(Arc::new(SizeExpr::symbol(name.into())))))
    }

    /// The number, unless it is symbolic or negative.
    pub fn as_known(&self) -> Option<usize> {
        self.as_number().and_then(|size| usize::try_from(size).ok())
    }

    /// The number, unless it is symbolic.
    pub fn as_number(&self) -> Option<i64> {
        match self.0 {
            Size::Known(size) => Some(size),
            Size::Expr(_) => None,
        }
    }

    /// The numbers, unless one is symbolic.
    pub fn all_known(dims: &[Dim]) -> Option<Vec<usize>> {
        dims.iter().map(Dim::as_known).collect()
    }

    /// The name, if it is a symbol alone.
    pub fn as_symbol(&self) -> Option<&str> {
        match &self.0 {
            Size::Expr(expr) => expr.as_symbol(),
            Size::Known(_) => None,
        }
    }

    /// The names of its symbols, in order.
    pub fn symbols(&self) -> BTreeSet<Arc<str>> {
        let mut names = BTreeSet::new();
        if let Size::Expr(expr) = &self.0 {
            expr.for_each_symbol(&mut |name| {
                names.insert(name.clone());
            });
        }
        names
    }

    /// The quotient, rounded down: Python's `//`.
    ///
    /// # Errors
    /// Returns an error if the divisor is zero, or a number does not fit an `i64`.
    pub fn div(&self, by: impl Into<Dim>) -> Result<Dim> {
        let by = by.into();
        match (&self.0, &by.0) {
            (Size::Known(a), Size::Known(b)) => rounded_down(*a, *b).map(Dim::from),
            _ => Ok(Dim::of(self.expr().quotient(&by.expr())?)),
        }
    }

    /// The remainder of [`div`](Dim::div): Python's `%`.
    ///
    /// ```
    /// use fx_core::value::Dim;
    /// let left = Dim::symbol("t")?.rem(8)?;
    /// assert_eq!(left.to_string(), "t % 8");
    /// assert_eq!(left.eval(|_| Some(21))?, 5);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the divisor is zero, or a number does not fit an `i64`.
    pub fn rem(&self, by: impl Into<Dim>) -> Result<Dim> {
        let by = by.into();
        self - (self.div(by.clone())? * by)?
    }

    /// The quotient, if this is a whole multiple of the other whatever the symbols are.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn exact_div(&self, by: &Dim) -> Result<Option<Dim>> {
        let exact = self.expr().exact(&by.expr())?;
        Ok(exact.map(Dim::of))
    }

    /// The smaller one.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn min(&self, other: impl Into<Dim>) -> Result<Dim> {
        Ok(Dim::of(SizeExpr::min([self.expr(), other.into().expr()])?))
    }

    /// The larger one.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn max(&self, other: impl Into<Dim>) -> Result<Dim> {
        Ok(Dim::of(SizeExpr::max([self.expr(), other.into().expr()])?))
    }

    /// The product of sizes; 1 if there are none.
    ///
    /// # Errors
    /// Returns an error if a number does not fit an `i64`.
    pub fn product<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Result<Dim> {
        dims.into_iter()
            .try_fold(Dim::known(1), |product, dim| product * dim)
    }

    /// The value, by the values of the symbols.
    ///
    /// # Errors
    /// Returns an error if a symbol has no value, something is divided by zero, or a number does
    /// not fit an `i64`.
    pub fn eval(&self, of: impl Fn(&str) -> Option<i64>) -> Result<i64> {
        match &self.0 {
            Size::Known(size) => Ok(*size),
            Size::Expr(expr) => expr.eval(&of),
        }
    }

    /// The size with sizes for some of its symbols.
    ///
    /// ```
    /// use fx_core::value::Dim;
    /// let size: Dim = "2*t + batch".parse()?;
    /// let fixed = size.with(|name| (name == "t").then_some(Dim::known(8)))?;
    /// assert_eq!(fixed.to_string(), "batch + 16");
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if something is divided by zero, or a number does not fit an `i64`.
    pub fn with(&self, of: impl Fn(&str) -> Option<Dim>) -> Result<Dim> {
        match &self.0 {
            Size::Known(_) => Ok(self.clone()),
            Size::Expr(expr) => {
                let of = |name: &str| of(name).map(|dim| dim.expr());
                Ok(Dim::of(expr.substitute(&of)?))
            }
        }
    }

    /// Limits of the value, both included, by those of the symbols; `None` is no limit.
    ///
    /// ```
    /// use fx_core::value::Dim;
    /// let size: Dim = "(h + 15) // 16 - 1".parse()?;
    /// assert_eq!(size.bounds(|_| (Some(1), Some(224))), (Some(0), Some(13)));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn bounds(
        &self,
        of: impl Fn(&str) -> (Option<i64>, Option<i64>),
    ) -> (Option<i64>, Option<i64>) {
        let range = match &self.0 {
            Size::Known(size) => SizeRange::number(*size),
            Size::Expr(expr) => expr.range(&|name| {
                let (low, high) = of(name);
                SizeRange { low, high }
            }),
        };
        (range.low, range.high)
    }

    /// What is divided, and by which number, if this is what is left of it: `h` and 4 for
    /// `h - 4*(h // 4)`.
    pub(crate) fn as_remainder(&self) -> Option<(Dim, i64)> {
        let expr = self.expr();
        let (found, rest) = expr.remainders();
        match &*found {
            [only] if only.times == 1 && rest.terms().is_empty() => {
                Some((Dim::of(only.of.clone()), only.by))
            }
            _ => None,
        }
    }

    /// What is at least a number if and only if this is at least `least`: `h` and 31 for
    /// `(h + 1) // 8` and 4.
    pub(crate) fn at_least(&self, least: i64) -> Result<(Dim, i64)> {
        let (of, least) = self.expr().at_least(least)?;
        Ok((Dim::of(of), least))
    }

    /// What is added in it, and what is taken from that: `(2*w, h)` of `2*w - h`.
    pub(crate) fn sides(&self) -> Result<(Dim, Dim)> {
        let (plus, minus) = self.expr().sides()?;
        Ok((Dim::of(plus), Dim::of(minus)))
    }

    fn of(expr: SizeExpr) -> Self {
        match expr.as_number() {
            Some(number) => Dim(Size::Known(number)),
            None => Dim(Size::Expr(Arc::new(expr))),
        }
    }

    pub(super) fn expr(&self) -> SizeExpr {
        match &self.0 {
            Size::Known(size) => SizeExpr::number(*size),
            Size::Expr(expr) => (**expr).clone(),
        }
    }
}

/// Zero.
impl Default for Dim {
    fn default() -> Self {
        Dim::known(0)
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim::known(size)
    }
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Dim(Size::Known(size))
    }
}

/// A literal.
impl From<i32> for Dim {
    fn from(size: i32) -> Self {
        Dim(Size::Known(size.into()))
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

impl PartialEq<usize> for Dim {
    fn eq(&self, size: &usize) -> bool {
        self.as_known() == Some(*size)
    }
}

impl PartialEq<Dim> for usize {
    fn eq(&self, dim: &Dim) -> bool {
        dim == self
    }
}

/// A sum, product or difference of two sizes, as numbers where both are.
fn computed(
    a: &Dim,
    b: &Dim,
    numbers: fn(i64, i64) -> Option<i64>,
    exprs: fn(&SizeExpr, &SizeExpr) -> Result<SizeExpr>,
) -> Result<Dim> {
    if let (Size::Known(a), Size::Known(b)) = (&a.0, &b.0)
        && let Some(number) = numbers(*a, *b)
    {
        return Ok(number.into());
    }
    Ok(Dim::of(exprs(&a.expr(), &b.expr())?))
}

macro_rules! operators {
    ($($operator:ident $method:ident $numbers:ident $exprs:ident;)*) => {$(
        impl<D: Into<Dim>> $operator<D> for &Dim {
            type Output = Result<Dim>;

            fn $method(self, other: D) -> Result<Dim> {
                computed(self, &other.into(), i64::$numbers, SizeExpr::$exprs)
            }
        }

        impl<D: Into<Dim>> $operator<D> for Dim {
            type Output = Result<Dim>;

            fn $method(self, other: D) -> Result<Dim> {
                (&self).$method(other)
            }
        }
    )*};
}

operators! {
    Add add checked_add add;
    Sub sub checked_sub sub;
    Mul mul checked_mul mul;
}
