//! Element types by ONNX's numbers.

use fx_nn::value::DType;
use fx_nn::{Error, Result};

/// ONNX's number of the element type of texts, which is none of fx's.
pub(crate) const TEXT: i32 = 8;

/// ONNX's number of an element type.
pub(crate) fn code(dtype: DType) -> Result<i32> {
    Ok(match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::BF16 => 16,
        other => {
            return Err(Error::not_in_format(format_args!(
                "ONNX has no element type {other}"
            )));
        }
    })
}

/// The element type of a number, if fx has it.
pub(crate) fn known(code: i32) -> Option<DType> {
    Some(match code {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::BF16,
        _ => return None,
    })
}

/// The type of whole numbers that fx computes in, where it only stores those of a type. Numbers of 64 bits without a sign
/// keep their bits.
pub(crate) fn wider(dtype: DType) -> Option<DType> {
    let held = fx_nn::candle_dtype(dtype).and_then(fx_nn::fx_dtype).ok()?;
    (dtype != DType::Bool && held != dtype).then_some(held)
}

/// ONNX's name of an element type.
pub(crate) fn name(code: i32) -> &'static str {
    match code {
        1 => "float",
        2 => "uint8",
        3 => "int8",
        4 => "uint16",
        5 => "int16",
        6 => "int32",
        7 => "int64",
        8 => "string",
        9 => "bool",
        10 => "float16",
        11 => "double",
        12 => "uint32",
        13 => "uint64",
        14 => "complex64",
        15 => "complex128",
        16 => "bfloat16",
        17 => "float8e4m3fn",
        18 => "float8e4m3fnuz",
        19 => "float8e5m2",
        20 => "float8e5m2fnuz",
        21 => "uint4",
        22 => "int4",
        23 => "float4e2m1",
        24 => "float8e8m0",
        25 => "uint2",
        26 => "int2",
        _ => "an unknown type",
    }
}

/// The error of elements of a type that fx does not have.
pub(crate) fn unknown(code: i32, of: &str) -> Error {
    Error::msg(format_args!(
        "`{of}` has elements of type {}, of which fx holds no tensors",
        name(code)
    ))
}

/// A number as an element, little-endian.
pub(crate) fn element(number: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(number != 0.0)],
        DType::F16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(number).to_le_bytes().to_vec(),
        DType::F32 => (number as f32).to_le_bytes().to_vec(),
        DType::F64 => number.to_le_bytes().to_vec(),
        _ => whole(number as i64, dtype),
    }
}

/// The least and the largest number of a type that `QuantizeLinear` gives.
pub(crate) fn ends(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        DType::U8 => Some((0, 255)),
        DType::I8 => Some((-128, 127)),
        DType::U16 => Some((0, 65_535)),
        DType::I16 => Some((-32_768, 32_767)),
        _ => None,
    }
}

/// A whole number as an element, little-endian; it wraps around in a type that is too small.
pub(crate) fn whole(number: i64, dtype: DType) -> Vec<u8> {
    let floats = dtype.is_floating_point() || dtype == DType::Bool;
    match floats {
        true => element(number as f64, dtype),
        // Little-endian: the low bytes are the number in a smaller type.
        false => number.to_le_bytes()[..dtype.size_in_bytes()].to_vec(),
    }
}
