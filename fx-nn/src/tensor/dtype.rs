//! Element types: candle's and fx's; what candle lacks is held in a type of its own that has room.
//!
//! Invariant: [`candle_dtype`] says which type holds it, and [`narrowed`] which numbers it has.

use fx_core::value::DType;
use fx_core::{Error, Result};

use super::Tensor;

/// Candle's type that holds an fx type. Candle lacks `bool`, `int8`, `uint16` and `uint64`: those are held in `u8`,
/// `i16`, `i32` and, bit for bit, `i64`.
pub fn candle_dtype(dtype: DType) -> Result<candle_core::DType> {
    use candle_core::DType as C;
    Ok(match dtype {
        DType::Bool | DType::U8 => C::U8,
        DType::U32 => C::U32,
        DType::I8 | DType::I16 => C::I16,
        DType::U16 | DType::I32 => C::I32,
        DType::U64 | DType::I64 => C::I64,
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

/// A whole number in the type of whole numbers that a tensor is of, where it wraps around, as the type that holds it has
/// it.
pub(crate) fn narrowed(number: i64, dtype: DType) -> i64 {
    match dtype {
        DType::I8 => i64::from(number as i8),
        DType::U16 => i64::from(number as u16),
        _ => number,
    }
}

/// Candle's smallest type that holds all numbers of a type that candle lacks.
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

/// The rank in promotion: floats before integers, integers before truth values.
fn category(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_floating_point() => 2,
        _ => 1,
    }
}

/// The type that an operation on all of them computes in, PyTorch's `result_type`: tensors without dims do not decide
/// it within its category. Each is a type, and whether there are dims; nothing for none of them.
pub(crate) fn result_type(tensors: impl IntoIterator<Item = (DType, bool)>) -> Option<DType> {
    let (mut with_dims, mut without) = (None, None);
    for (dtype, has_dims) in tensors {
        let seen = match has_dims {
            true => &mut with_dims,
            false => &mut without,
        };
        *seen = Some(seen.map_or(dtype, |seen: DType| seen.promote(dtype)));
    }
    match (with_dims, without) {
        (Some(dtype), Some(other)) if category(other) <= category(dtype) => Some(dtype),
        (Some(dtype), Some(other)) => Some(dtype.promote(other)),
        (dtype, other) => dtype.or(other),
    }
}

/// The type that an operation on all of them computes in.
pub(crate) fn common_of(tensors: &[&Tensor]) -> Result<DType> {
    let of = |tensor: &&Tensor| Ok((tensor.dtype()?, !tensor.dims()?.is_empty()));
    let all = tensors.iter().map(of).collect::<Result<Vec<_>>>()?;
    result_type(all).ok_or_else(|| Error::msg("no tensor says which type there is"))
}

impl Tensor {
    /// The type that an operation on both computes in.
    pub(crate) fn common(&self, other: &Tensor) -> Result<DType> {
        common_of(&[self, other])
    }
}
