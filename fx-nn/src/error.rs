//! Candle's errors converted to fx's.

use fx_core::{Error, Result};

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
    Error::other(error)
}
