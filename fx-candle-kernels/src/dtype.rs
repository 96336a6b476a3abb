//! The names of candle's dtypes.

use candle_core::DType;

/// PyTorch's name of candle's type: `float64`. A type that only candle has keeps its own.
pub fn dtype_name(dtype: DType) -> &'static str {
    use DType as C;
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
