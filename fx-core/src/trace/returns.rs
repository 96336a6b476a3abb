//! `Returns`: the `Result` that a user's function returns, whatever its error type.

use std::panic::Location;

use super::convert::{FromValue, Output};
use crate::error::{Error, Result};
use crate::ir::function::Function;
use crate::ir::param_type::ParamType;
use crate::shapes::refusal::refusal_of;
use crate::value::value::Value;

/// The return type of a `#[trace]` or `#[wrap]` function: a `Result` whose error is fx's or is made
/// from it.
#[diagnostic::on_unimplemented(
    message = "a traced function returns a `Result` of what a graph can hold, not `{Self}`",
    label = "expected `Result<..>`, with `fx_core::Error` or an error type that has `From<fx_core::Error>`"
)]
pub trait Returns: Sized {
    /// What it returns on success.
    type Output: Output;
    /// The type of that, as data.
    const TYPE: ParamType = <Self::Output as FromValue>::TYPE;

    /// Makes it from a symbolic result.
    fn from_recorded(recorded: Result<Value>) -> Self;

    /// Adds to an error of an eager call what was called, and where.
    #[must_use]
    fn called(self, what: &'static str, caller: &'static Location<'static>) -> Self;

    /// The same for an operation, whose shape rule says what is wrong with the arguments if it
    /// refuses them.
    #[must_use]
    fn called_or_refused(
        self,
        function: Function,
        caller: &'static Location<'static>,
        args: impl FnOnce() -> Vec<Value>,
    ) -> Self;

    /// Stores the result in its place.
    ///
    /// # Errors
    /// Returns its own error, as fx's.
    fn give(self, out: &mut Value) -> Result<()>;
}

impl<T, E> Returns for Result<T, E>
where
    T: Output,
    E: From<Error> + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Output = T;

    fn from_recorded(recorded: Result<Value>) -> Self {
        Ok(T::from_value(recorded?)?)
    }

    #[inline]
    fn called(self, what: &'static str, caller: &'static Location<'static>) -> Self {
        self.map_err(|error| in_call(error, what, caller))
    }

    #[inline]
    fn called_or_refused(
        self,
        function: Function,
        caller: &'static Location<'static>,
        args: impl FnOnce() -> Vec<Value>,
    ) -> Self {
        self.map_err(|error| refused(error, function, caller, args()))
    }

    #[inline]
    fn give(self, out: &mut Value) -> Result<()> {
        match self {
            Ok(result) => {
                result.give(out);
                Ok(())
            }
            Err(error) => Err(as_ours(error.into())),
        }
    }
}

/// An error with the call that failed, if it is fx's own.
#[cold]
#[inline(never)]
fn in_call<E>(error: E, what: &str, caller: &'static Location<'static>) -> E
where
    E: From<Error> + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match is_ours::<E>() {
        true => as_ours(error.into()).in_call(what, caller).into(),
        false => error,
    }
}

/// An error of an operation with the call that failed, if it is fx's own.
#[cold]
#[inline(never)]
fn refused<E>(
    error: E,
    function: Function,
    caller: &'static Location<'static>,
    args: Vec<Value>,
) -> E
where
    E: From<Error> + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !is_ours::<E>() {
        return error;
    }
    let error = refusal_of(function, &args, as_ours(error.into()));
    error.in_call(function.name(), caller).into()
}

/// Whether it is fx's error. Only that has a place for a call; a user's error type is returned
/// unchanged.
fn is_ours<E>() -> bool {
    std::any::type_name::<E>() == std::any::type_name::<Error>()
}

/// A user's error as fx's; fx's own is returned unchanged.
#[cold]
pub(crate) fn as_ours(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(other) => Error::other(other),
    }
}
