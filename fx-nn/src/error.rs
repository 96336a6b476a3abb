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

/// PyTorch's name of candle's type: `float64`. A type that only candle has keeps its own.
pub(crate) fn dtype_name(dtype: candle_core::DType) -> &'static str {
    use candle_core::DType as C;
    match dtype {
        C::U8 => "uint8",
        C::U32 => "uint32",
        C::I16 => "int16",
        C::I32 => "int32",
        C::I64 => "int64",
        C::BF16 => "bfloat16",
        C::F16 => "float16",
        C::F32 => "float32",
        C::F64 => "float64",
        other => other.as_str(),
    }
}
