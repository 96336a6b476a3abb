//! Element types: candle's and fx's, one for one; truth values are candle's `u8`.

use fx_core::value::DType;
use fx_core::{Error, Result};

use super::Tensor;

/// Candle's type that holds an fx type.
pub fn candle_dtype(dtype: DType) -> Result<candle_core::DType> {
    use candle_core::DType as C;
    Ok(match dtype {
        DType::Bool | DType::U8 => C::U8,
        DType::U32 => C::U32,
        DType::I16 => C::I16,
        DType::I32 => C::I32,
        DType::I64 => C::I64,
        DType::BF16 => C::BF16,
        DType::F16 => C::F16,
        DType::F32 => C::F32,
        DType::F64 => C::F64,
        other => {
            return Err(Error::msg(format_args!(
                "candle has no element type for {other}"
            )));
        }
    })
}

/// The smallest type of candle's that has all numbers of a type that candle has not.
pub(crate) fn wider(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I8 => Some(DType::I16),
        DType::U16 => Some(DType::I32),
        _ => None,
    }
}

/// Fx's type of a candle type.
pub fn fx_dtype(dtype: candle_core::DType) -> Result<DType> {
    use candle_core::DType as C;
    Ok(match dtype {
        C::U8 => DType::U8,
        C::U32 => DType::U32,
        C::I16 => DType::I16,
        C::I32 => DType::I32,
        C::I64 => DType::I64,
        C::BF16 => DType::BF16,
        C::F16 => DType::F16,
        C::F32 => DType::F32,
        C::F64 => DType::F64,
        other => {
            return Err(Error::msg(format_args!(
                "candle's {other:?} has no counterpart in fx"
            )));
        }
    })
}

/// What decides first: floats before integers, integers before truth values.
fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_floating_point() => 2,
        _ => 1,
    }
}

impl Tensor {
    /// The type that an operation on both computes in, PyTorch's `result_type`: a tensor without dims does not decide it
    /// within its category.
    pub(crate) fn common(&self, other: &Tensor) -> Result<DType> {
        let (own, theirs) = (self.dtype()?, other.dtype()?);
        Ok(match (self.dims()?.is_empty(), other.dims()?.is_empty()) {
            (true, false) if category(own) <= category(theirs) => theirs,
            (false, true) if category(theirs) <= category(own) => own,
            _ => own.promote(theirs),
        })
    }
}
