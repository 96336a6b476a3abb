//! `assert!` in a traced body: Rust's own for a plain `bool`, a node that stops a failing run for a
//! traced truth value.

use super::call_args::CallForm;
use super::dispatch::call_values;
use crate::error::{Error, Result};
use crate::ir::operator;
use crate::value::object::Traced;
use crate::value::symbol::Bool;
use crate::value::value::{IntoValue, Value};

/// What a traced body may assert: a plain `bool`, a traced truth value, or the result of a
/// comparison of those.
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
    /// A plain Rust value.
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
/// Returns the error if the claim is one.
#[inline]
pub fn claim(claim: impl Assertable) -> Result<Claim> {
    claim.claim()
}

/// Asserts a tensor or scalar: records a node while tracing, else checks it at once.
///
/// # Errors
/// Returns an error if a known value does not hold, or the tracer refuses.
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
