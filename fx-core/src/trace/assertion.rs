//! `assert!` in a traced body: of a plain `bool` it is Rust's own, of a traced truth value it is a node that stops a failing run.

use super::dispatch::{CallForm, call_values};
use crate::error::{Error, Result};
use crate::ir::operator;
use crate::value::object::Traced;
use crate::value::symbol::Bool;
use crate::value::value::{IntoValue, Value};

/// What a traced body may assert: a plain `bool`, a traced truth value, or the result of a comparison of those.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asserted",
    label = "expected a plain `bool` or a traced truth value",
    note = "compare traced values: `assert!(x.sum(..)? > 0.0, \"the input is empty\")`"
)]
pub trait Assertable {
    /// What is asserted.
    fn claim(self) -> Result<Claim>;
}

/// What is asserted.
#[derive(Debug)]
pub enum Claim {
    /// Known as plain Rust knows it.
    Plain(bool),
    /// A tensor or scalar, symbolic or not.
    Traced(Value),
}

impl Assertable for bool {
    #[inline]
    fn claim(self) -> Result<Claim> {
        Ok(Claim::Plain(self))
    }
}

impl Assertable for Bool {
    fn claim(self) -> Result<Claim> {
        Ok(Claim::Traced(self.into_value()))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Traced + IntoValue> Assertable for T {
    fn claim(self) -> Result<Claim> {
        Ok(Claim::Traced(self.into_value()))
    }
}

impl<T: Assertable> Assertable for Result<T, Error> {
    fn claim(self) -> Result<Claim> {
        self?.claim()
    }
}

/// Written by `#[trace]` for `assert!(claim, words)`.
///
/// # Errors
/// When the claim is one.
#[inline]
pub fn claim(claim: impl Assertable) -> Result<Claim> {
    claim.claim()
}

/// Asserts a tensor or scalar: a node while tracing, else at once.
///
/// # Errors
/// When a known value does not hold, or the tracer refuses.
#[track_caller]
pub fn assert_traced(value: Value, words: String) -> Result<()> {
    let args = vec![value, words.into_value()];
    call_values(operator::_assert, CallForm::Function, args).map(drop)
}

/// `assert!` of a traced body; see [`Assertable`].
#[doc(hidden)]
#[macro_export]
macro_rules! __assert {
    ($claim:expr, $($words:tt)+) => {
        match $crate::__private::claim($claim)? {
            $crate::__private::Claim::Plain(holds) => ::core::assert!(holds, $($words)+),
            $crate::__private::Claim::Traced(value) => {
                $crate::__private::assert_traced(value, ::std::format!($($words)+))?
            }
        }
    };
}
