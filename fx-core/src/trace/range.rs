//! `a..b` whose ends have two types, as in `x.i(0..n)` with a traced `n`: what `#[trace]` makes of
//! a range in an index.
//!
//! Invariant: a range of plain numbers stays the range that plain Rust makes of it.

use std::ops::Range;

use crate::value::symbol::Int;

/// The start of a range that ends at a `B`.
#[diagnostic::on_unimplemented(
    message = "`{Self}..{B}` is not a range",
    label = "the ends of a range are two numbers of one type, or an `Int` and a whole number"
)]
pub trait RangeBound<B> {
    /// What both ends become.
    type Bound;

    /// The range up to `end`.
    fn up_to(self, end: B) -> Range<Self::Bound>;
}

impl<A: Into<Int>> RangeBound<Int> for A {
    type Bound = Int;

    fn up_to(self, end: Int) -> Range<Int> {
        self.into()..end
    }
}

/// Ends of one type.
macro_rules! alike {
    ($($t:ty),*) => {$(
        impl RangeBound<$t> for $t {
            type Bound = $t;

            fn up_to(self, end: $t) -> Range<$t> {
                self..end
            }
        }
    )*};
}

alike!(
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, char, f32, f64
);

/// A traced start and a plain end.
macro_rules! plain_ends {
    ($($t:ty),*) => {$(
        impl RangeBound<$t> for Int {
            type Bound = Int;

            fn up_to(self, end: $t) -> Range<Int> {
                self..end.into()
            }
        }
    )*};
}

plain_ends!(i32, i64, usize);

/// `start..end`.
pub fn range<A: RangeBound<B>, B>(start: A, end: B) -> Range<A::Bound> {
    start.up_to(end)
}
