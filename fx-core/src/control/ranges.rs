//! What `#[trace(control_flow)]` writes for `for i in a..b`: bounds that are plain numbers, or that
//! may be traced.
//!
//! Invariant: a range of plain numbers is the standard library's iterator.

use std::ops::{Range, RangeInclusive};

use super::choice::Whole;
use super::if_region::{Fork, fork};
use super::kind::{Kind, Plain, Symbolic};
use crate::error::{Error, Result};
use crate::ir::function::Function;
use crate::ir::operator;
use crate::value::symbol::{Bool, Int, Sym};

/// A bound of a range, beside which a literal can stand.
#[diagnostic::on_unimplemented(
    message = "a range of whole numbers cannot have the bound `{Self}`",
    label = "neither a plain whole number nor an `Int`"
)]
pub trait Bound: Sized {
    /// The type of such a literal.
    type Literal;

    #[doc(hidden)]
    fn literal(literal: Self::Literal) -> Self;
}

impl<P: Whole> Bound for P {
    type Literal = P;

    #[inline(always)]
    fn literal(literal: P) -> P {
        literal
    }
}

impl Bound for Int {
    type Literal = i64;

    fn literal(literal: i64) -> Int {
        Int::from(literal)
    }
}

/// The bounds of `literal..to`.
#[inline(always)]
pub fn bounds_from<T: Bound>(from: T::Literal, to: T) -> (T, T) {
    (T::literal(from), to)
}

/// The bounds of `from..literal`.
#[inline(always)]
pub fn bounds_to<T: Bound>(from: T, to: T::Literal) -> (T, T) {
    (from, T::literal(to))
}

/// The type of a range from `Self` to `B`.
#[diagnostic::on_unimplemented(
    message = "no range goes from `{Self}` to `{B}`",
    label = "both bounds are whole numbers: plain ones of one type, or `Int`"
)]
pub trait Pair<B> {
    /// The type of both bounds.
    type Bound;

    #[doc(hidden)]
    fn pair(self, to: B) -> Result<(Self::Bound, Self::Bound)>;
}

impl<P: Whole> Pair<P> for P {
    type Bound = P;

    #[inline(always)]
    fn pair(self, to: P) -> Result<(P, P)> {
        Ok((self, to))
    }
}

impl<P: Whole> Pair<Int> for P {
    type Bound = Int;

    fn pair(self, to: Int) -> Result<(Int, Int)> {
        let from = i64::try_from(self.wide());
        let from =
            from.map_err(|_| Error::expected("a bound that an `Int` holds", "a larger one"))?;
        Ok((Int::from(from), to))
    }
}

impl<B: Into<Int>> Pair<B> for Int {
    type Bound = Int;

    fn pair(self, to: B) -> Result<(Int, Int)> {
        Ok((self, to.into()))
    }
}

/// The bounds of `from..to`.
///
/// # Errors
/// Returns an error if one of them is a number that an `Int` does not hold.
#[inline(always)]
pub fn bounds<A: Pair<B>, B>(from: A, to: B) -> Result<(A::Bound, A::Bound)> {
    from.pair(to)
}

/// A range whose steps a loop takes.
pub trait Steps {
    /// What decides whether there is another step.
    type Kind: Kind;
    /// What a step gives.
    type Item;
    /// What changes from step to step.
    type Counter;

    #[doc(hidden)]
    fn fork(&mut self) -> Result<Fork<Self::Kind>>;

    #[doc(hidden)]
    fn step(&mut self) -> Result<Option<Self::Item>>;

    #[doc(hidden)]
    fn counter(&mut self) -> &mut Self::Counter;
}

/// A range that Rust counts.
pub struct Counted<R: Iterator> {
    rest: R,
    next: Option<R::Item>,
}

impl<R: Iterator> Steps for Counted<R> {
    type Kind = Plain;
    type Item = R::Item;
    type Counter = R;

    #[inline(always)]
    fn fork(&mut self) -> Result<Fork<Plain>> {
        self.next = self.rest.next();
        Ok(Fork::Known(self.next.is_some()))
    }

    #[inline(always)]
    fn step(&mut self) -> Result<Option<R::Item>> {
        Ok(self.next.take())
    }

    #[inline(always)]
    fn counter(&mut self) -> &mut R {
        &mut self.rest
    }
}

/// A range that a graph may count.
///
/// With its end it counts from one before the next step, so that there is a number behind each step
/// but the largest of all, which is the last.
pub struct TracedRange {
    /// The next step; of a range with its end, the last one.
    counter: Int,
    end: Int,
    is_inclusive: bool,
    /// Where a range with its end begins, before its first step.
    begin: Option<Int>,
}

impl TracedRange {
    fn asks(&self) -> (Function, (Int, Int)) {
        let (next, takes_end) = match self.begin {
            Some(begin) => (begin, true),
            None => (self.counter, false),
        };
        // A plain bound stands behind, as a comparison in the source would have it.
        match (next, takes_end) {
            (Sym::Concrete(_), false) => (operator::gt, (self.end, next)),
            (Sym::Concrete(_), true) => (operator::ge, (self.end, next)),
            (Sym::Proxy(_), false) => (operator::lt, (next, self.end)),
            (Sym::Proxy(_), true) => (operator::le, (next, self.end)),
        }
    }
}

impl Steps for TracedRange {
    type Kind = Symbolic;
    type Item = Int;
    type Counter = Int;

    #[track_caller]
    fn fork(&mut self) -> Result<Fork<Symbolic>> {
        let (compare, bounds) = self.asks();
        fork(compare.call_as::<Bool>(bounds))
    }

    fn step(&mut self) -> Result<Option<Int>> {
        self.begin = None;
        let next = (self.counter + 1)?;
        let step = if self.is_inclusive {
            next
        } else {
            self.counter
        };
        self.counter = next;
        Ok(Some(step))
    }

    fn counter(&mut self) -> &mut Int {
        &mut self.counter
    }
}

/// A range as written.
pub trait Stepped {
    /// Its steps.
    type Steps: Steps;

    #[doc(hidden)]
    fn steps(self) -> Result<Self::Steps>;
}

impl<P: Whole> Stepped for Range<P>
where
    Range<P>: Iterator<Item = P>,
{
    type Steps = Counted<Range<P>>;

    #[inline(always)]
    fn steps(self) -> Result<Self::Steps> {
        Ok(Counted {
            rest: self,
            next: None,
        })
    }
}

impl<P: Whole> Stepped for RangeInclusive<P>
where
    RangeInclusive<P>: Iterator<Item = P>,
{
    type Steps = Counted<RangeInclusive<P>>;

    #[inline(always)]
    fn steps(self) -> Result<Self::Steps> {
        Ok(Counted {
            rest: self,
            next: None,
        })
    }
}

impl Stepped for Range<Int> {
    type Steps = TracedRange;

    fn steps(self) -> Result<TracedRange> {
        Ok(TracedRange {
            counter: self.start,
            end: self.end,
            is_inclusive: false,
            begin: None,
        })
    }
}

impl Stepped for RangeInclusive<Int> {
    type Steps = TracedRange;

    fn steps(self) -> Result<TracedRange> {
        let (begin, end) = self.into_inner();
        Ok(TracedRange {
            counter: (begin - 1)?,
            end,
            is_inclusive: true,
            begin: Some(begin),
        })
    }
}

/// Written for the range of a `for`.
///
/// # Errors
/// Returns an error if a range with its end begins at the least number that an `Int` holds.
#[inline(always)]
#[track_caller]
pub fn steps<R: Stepped>(range: R) -> Result<R::Steps> {
    range.steps()
}
