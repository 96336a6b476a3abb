//! What `#[trace(control_flow)]` writes for a `match` on whole numbers and booleans: which of the cases
//! a value is.
//!
//! Invariant: a plain value answers with a plain `bool`, and costs what its comparison costs.

use crate::error::{Error, Result};
use crate::ir::operator;
use crate::value::symbol::{Bool, Int, Sym};

/// A plain whole number.
pub trait Whole: Copy {
    #[doc(hidden)]
    fn wide(self) -> i128;
}

macro_rules! whole {
    ($($ty:ty)*) => {
        $(impl Whole for $ty {
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
        })*
    };
}

impl<P: Whole> Whole for &P {
    #[inline(always)]
    fn wide(self) -> i128 {
        P::wide(*self)
    }
}

whole!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// A pattern: the numbers from the first to the second one.
#[derive(Clone, Copy, Debug)]
pub struct Case(pub Option<i128>, pub Option<i128>);

impl Case {
    #[inline(always)]
    fn has(self, value: i128) -> bool {
        self.0.is_none_or(|low| low <= value) && self.1.is_none_or(|high| value <= high)
    }
}

/// A value of which a `match` chooses.
#[diagnostic::on_unimplemented(
    message = "`match` on literals of whole numbers cannot choose by a `{Self}`",
    label = "neither a whole number or a `bool`, nor an `Int` or a `Bool`"
)]
pub trait Chooses {
    /// A `bool`, or what may be traced.
    type Answer;

    #[doc(hidden)]
    fn is(&self, cases: &[Case]) -> Self::Answer;
}

impl<P: Whole> Chooses for P {
    type Answer = bool;

    #[inline(always)]
    fn is(&self, cases: &[Case]) -> bool {
        cases.iter().any(|case| case.has(self.wide()))
    }
}

impl Chooses for bool {
    type Answer = bool;

    #[inline(always)]
    fn is(&self, cases: &[Case]) -> bool {
        cases.iter().any(|case| case.has(i128::from(*self)))
    }
}

impl Chooses for Int {
    type Answer = Result<Bool>;

    #[track_caller]
    fn is(&self, cases: &[Case]) -> Result<Bool> {
        if let Sym::Concrete(known) = self {
            return Ok(Bool::from(known.is(cases)));
        }
        let mut answer: Option<Bool> = None;
        for case in cases {
            let found = in_case(*self, *case)?;
            answer = Some(match answer {
                Some(before) => operator::or_.call_as((before, found))?,
                None => found,
            });
        }
        answer.map_or(Ok(Bool::from(false)), Ok)
    }
}

#[track_caller]
fn in_case(value: Int, case: Case) -> Result<Bool> {
    let bound = |bound: i128| {
        let bound = i64::try_from(bound);
        bound.map_err(|_| Error::expected("a pattern that an `Int` holds", "a larger number"))
    };
    let (low, high) = (
        case.0.map(bound).transpose()?,
        case.1.map(bound).transpose()?,
    );
    match (low, high) {
        (Some(low), Some(high)) if low == high => operator::eq.call_as((value, low)),
        (Some(low), Some(high)) => {
            let above: Bool = operator::ge.call_as((value, low))?;
            let below: Bool = operator::le.call_as((value, high))?;
            operator::and_.call_as((above, below))
        }
        (Some(low), None) => operator::ge.call_as((value, low)),
        (None, Some(high)) => operator::le.call_as((value, high)),
        (None, None) => Ok(Bool::from(true)),
    }
}

impl Chooses for Bool {
    type Answer = Result<Bool>;

    #[track_caller]
    fn is(&self, cases: &[Case]) -> Result<Bool> {
        if let Sym::Concrete(known) = self {
            return Ok(Bool::from(known.is(cases)));
        }
        match (true.is(cases), false.is(cases)) {
            (true, false) => Ok(*self),
            (false, true) => operator::invert.call_as((*self,)),
            (always, _) => Ok(Bool::from(always)),
        }
    }
}

/// Written for the value of a `match`.
#[inline(always)]
pub fn choose<T: Chooses>(value: T) -> T {
    value
}
