//! Candle's errors converted to fx's, and the error of arguments that an operation does not take.
//!
//! Invariant: what an operation does not take is said by its shape rule alone.

use fx_core::{Error, Result};

pub(crate) use crate::kernels::dtype::dtype_name;

/// What [`unfit`] says, which no user reads where the shape rules are known.
pub(crate) const UNFIT: &str = "does not take these arguments";

/// The error of arguments that the shape rule of an operation refuses: with a registry, what the
/// rule says stands in its place.
#[cold]
pub(crate) fn unfit(op: &str) -> Error {
    let hint = match cfg!(feature = "registry") {
        true => "see its documentation",
        false => "with the feature `registry`, the error says why",
    };
    Error::msg(format_args!("{op} {UNFIT}: {hint}"))
}

/// Returns [`unfit`] unless it holds.
pub(crate) fn require(op: &str, holds: bool) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(unfit(op)),
    }
}

/// Converts a candle result to fx's.
pub(crate) trait Fx<T> {
    /// The same result, with fx's error.
    fn fx(self) -> Result<T>;
}

impl<T> Fx<T> for candle_core::Result<T> {
    #[inline]
    fn fx(self) -> Result<T> {
        self.map_err(candle_error)
    }
}

/// Out of line: candle's error is large, and the happy path should not carry it.
#[cold]
fn candle_error(mut error: candle_core::Error) -> Error {
    // The backtrace would stand in the middle of the message; fx names the user's line instead.
    while let candle_core::Error::WithBacktrace { inner, .. } = error {
        error = *inner;
    }
    use candle_core::Error as Candle;
    match error {
        // Types have the names that they have elsewhere.
        Candle::DTypeMismatchBinaryOp { lhs, rhs, op } => Error::msg(format_args!(
            "{op}: a tensor is {} and the other {}",
            dtype_name(lhs),
            dtype_name(rhs)
        )),
        Candle::UnexpectedDType { msg, expected, got } => Error::msg(format_args!(
            "{msg}: expected {}, found {}",
            dtype_name(expected),
            dtype_name(got)
        )),
        Candle::UnsupportedDTypeForOp(dtype, op) => {
            Error::msg(format_args!("{op} takes no {}", dtype_name(dtype)))
        }
        error => Error::other(error),
    }
}
