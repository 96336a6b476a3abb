//! `Returns`: the `Result` that a user's function returns, whatever its error type.

use super::convert::{FromValue, Output};
use crate::error::{Error, Result};
use crate::ir::param_type::ParamType;
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

/// A user's error as fx's; fx's own is returned unchanged.
#[cold]
fn as_ours(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(other) => Error::other(other),
    }
}
