//! Constants of a file as tensors.
//!
//! Invariant: a tensor is made after its size was compared with the bytes that are there.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, candle_core};

use super::value::V;
use crate::dtype;
use crate::proto::{SparseTensorProto, TensorProto};
use crate::texts::Texts;

/// The sizes, and the number of elements.
pub(super) fn shape_of(dims: &[i64], what: &str) -> Result<(Vec<usize>, usize)> {
    let shape: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    let shape =
        shape.ok_or_else(|| Error::msg(format_args!("{what} has a negative size: {dims:?}")))?;
    let count = shape
        .iter()
        .try_fold(1usize, |n, dim| n.checked_mul(*dim))
        .filter(|n| *n <= isize::MAX as usize / 16);
    let count = count.ok_or_else(|| {
        Error::msg(format_args!(
            "{what} has more elements than fit into memory: {dims:?}"
        ))
    })?;
    Ok((shape, count))
}

/// The bytes of a tensor in another file of the folder.
fn external(proto: &TensorProto, folder: Option<&Path>, needed: usize) -> Result<Vec<u8>> {
    let of = |key: &str| {
        proto
            .external_data
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &*entry.value)
    };
    let wrong = |problem: String| {
        Error::msg(format_args!(
            "the constant `{}` is in another file: {problem}",
            proto.name
        ))
    };
    let location = of("location").ok_or_else(|| wrong("its name is missing".into()))?;
    let folder = folder.ok_or_else(|| {
        wrong(format!(
            "`{location}`, and bytes have no folder: use `load`"
        ))
    })?;
    let is_plain = Path::new(location)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_plain {
        return Err(wrong(format!(
            "`{location}` leads out of the folder of the model"
        )));
    }
    let path = folder.join(location);
    let real = path
        .canonicalize()
        .map_err(|e| wrong(format!("{}: {e}", path.display())))?;
    let inside = folder.canonicalize().map_err(|e| wrong(e.to_string()))?;
    if !real.starts_with(&inside) {
        return Err(wrong(format!(
            "`{location}` leads out of the folder of the model"
        )));
    }
    let number = |key: &str| {
        of(key)
            .map(|text| {
                text.parse::<u64>()
                    .map_err(|_| wrong(format!("{key} is {text:?}")))
            })
            .transpose()
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    if length.is_some_and(|length| length != needed as u64) {
        return Err(wrong(format!(
            "it has {} bytes, and its sizes need {needed}",
            length.unwrap_or(0)
        )));
    }
    let mut file =
        fx_nn::__private::opened(&real).map_err(|e| wrong(format!("{}: {e}", real.display())))?;
    let there = file.metadata().map_err(|e| wrong(e.to_string()))?.len();
    if offset
        .checked_add(needed as u64)
        .is_none_or(|end| end > there)
    {
        return Err(wrong(format!(
            "{needed} bytes from {offset} on are needed, and `{location}` has {there}"
        )));
    }
    file.seek(SeekFrom::Start(offset))
        .map_err(|e| wrong(e.to_string()))?;
    let mut bytes = vec![0u8; needed];
    file.read_exact(&mut bytes)
        .map_err(|e| wrong(e.to_string()))?;
    Ok(bytes)
}

/// Packed varints of a field.
fn varints(packed: &[Bytes]) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for bytes in packed {
        let (mut value, mut shift) = (0u64, 0);
        for byte in bytes {
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if *byte < 0x80 {
                all.push(value);
                (value, shift) = (0, 0);
            } else if shift > 63 {
                return Err(Error::msg("a number of more than ten bytes"));
            }
        }
    }
    Ok(all)
}

/// The elements as bytes, whichever field has them.
fn raw(proto: &TensorProto, count: usize, width: usize, folder: Option<&Path>) -> Result<Bytes> {
    let needed = count * width;
    if proto.data_location == 1 {
        return external(proto, folder, needed).map(Bytes::from);
    }
    let joined = |parts: &[Bytes]| match parts {
        [one] => one.clone(),
        parts => parts.concat().into(),
    };
    let bytes = match &proto.raw_data {
        Some(raw) if !raw.is_empty() || count == 0 => raw.clone(),
        _ => match proto.data_type {
            1 => joined(&proto.float_data),
            11 => joined(&proto.double_data),
            _ => {
                let packed = match proto.data_type {
                    7 => &proto.int64_data,
                    12 | 13 => &proto.uint64_data,
                    _ => &proto.int32_data,
                };
                // Each element takes a byte or more.
                let there: usize = packed.iter().map(Bytes::len).sum();
                if there < count {
                    return Err(Error::msg(format_args!(
                        "{count} elements are announced, and {there} bytes are there"
                    )));
                }
                let numbers = varints(packed)?;
                numbers
                    .iter()
                    .flat_map(|n| n.to_le_bytes()[..width].to_vec())
                    .collect::<Vec<u8>>()
                    .into()
            }
        },
    };
    if bytes.len() != needed {
        return Err(Error::msg(format_args!(
            "its sizes need {needed} bytes, and {} are there",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// A constant as a tensor; as a parameter if it is floats to be trained.
///
/// # Errors
/// Returns an error that names it, if its type is not fx's or its bytes do not fit its sizes.
pub(super) fn tensor(proto: &TensorProto, folder: Option<&Path>, trained: bool) -> Result<Tensor> {
    let what = format!("the constant `{}`", proto.name);
    let (shape, count) = shape_of(&proto.dims, &what)?;
    let about = |error: Error| Error::msg(format_args!("{what}: {error}"));
    let Some(dtype) = dtype::known(proto.data_type) else {
        return Err(about(Error::msg(format_args!(
            "fx has no elements of type {}",
            dtype::name(proto.data_type)
        ))));
    };
    let bytes = raw(proto, count, dtype.size_in_bytes(), folder).map_err(about)?;
    of_bytes(&bytes, dtype, &shape, trained).map_err(about)
}

/// A tensor of bytes, or a variable of them if it is floats to be trained.
pub(super) fn of_bytes(
    bytes: &[u8],
    dtype: DType,
    shape: &[usize],
    trained: bool,
) -> Result<Tensor> {
    let trained = trained && dtype.is_floating_point();
    macro_rules! made {
        ($of:ty, $read:expr) => {
            made!($of, $of, $read)
        };
        ($from:ty, $of:ty, $read:expr) => {{
            let (all, _) = bytes.as_chunks::<{ size_of::<$from>() }>();
            let values: Vec<$of> = all.iter().copied().map($read).collect();
            // A variable is made of the values themselves; one of a tensor would be a copy.
            match trained {
                true => candle_core::Var::from_vec(values, shape, &candle_core::Device::Cpu)
                    .map(candle_core::Var::into_inner),
                false => candle_core::Tensor::from_vec(values, shape, &candle_core::Device::Cpu),
            }
        }};
    }
    let data = match dtype {
        DType::Bool | DType::U8 => made!(u8, u8::from_le_bytes),
        DType::U32 => made!(u32, u32::from_le_bytes),
        DType::I16 => made!(i16, i16::from_le_bytes),
        DType::I32 => made!(i32, i32::from_le_bytes),
        DType::I64 => made!(i64, i64::from_le_bytes),
        DType::F16 => made!(half::f16, half::f16::from_le_bytes),
        DType::BF16 => made!(half::bf16, half::bf16::from_le_bytes),
        DType::F32 => made!(f32, f32::from_le_bytes),
        DType::F64 => made!(f64, f64::from_le_bytes),
        // Candle lacks these: they are made of a type that holds their numbers.
        DType::U64 => made!(i64, i64::from_le_bytes),
        DType::I8 => made!(u8, i16, |[byte]| i16::from(byte as i8)),
        DType::U16 => made!(u16, i32, |bytes| i32::from(u16::from_le_bytes(bytes))),
        other => return Err(Error::msg(format_args!("fx holds no tensors of {other}"))),
    };
    let tensor = Tensor::from(data.map_err(Error::other)?);
    match dtype {
        DType::Bool => tensor.ne(0),
        dtype if dtype::wider(dtype).is_some() => tensor.to_dtype(dtype),
        _ => Ok(tensor),
    }
}

/// A constant, as a tensor of numbers or of text.
///
/// # Errors
/// As [`tensor`].
pub(super) fn constant(proto: &TensorProto, folder: Option<&Path>, trained: bool) -> Result<V> {
    if proto.data_type == dtype::TEXT {
        return texts(proto).map(V::Texts);
    }
    let tensor = tensor(proto, folder, trained)?;
    let dtype = Tensor::dtype(&tensor)?;
    Ok(V::of(tensor, dtype))
}

/// The texts of a constant.
///
/// # Errors
/// Returns an error that names it, if there are more or fewer than its sizes say.
pub(super) fn texts(proto: &TensorProto) -> Result<Texts> {
    let what = format!("the constant `{}`", proto.name);
    let (shape, _) = shape_of(&proto.dims, &what)?;
    let items = proto.string_data.iter().map(|text| of_utf8(text));
    Texts::new(items, shape).map_err(|e| Error::msg(format_args!("{what}: {e}")))
}

/// Text as a file has it.
pub(super) fn of_utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A constant by its elements that are not zero, with its name.
///
/// # Errors
/// Returns an error that names it, if places are outside of it, or it would take more bytes than the limit.
pub(super) fn dense(
    proto: &SparseTensorProto,
    folder: Option<&Path>,
    limit: u64,
) -> Result<(String, Tensor)> {
    let empty = TensorProto::default();
    let values = proto.values.as_ref().unwrap_or(&empty);
    let what = format!("the sparse constant `{}`", values.name);
    let about = |problem: &dyn std::fmt::Display| Error::msg(format_args!("{what}: {problem}"));
    let (shape, count) = shape_of(&proto.dims, &what)?;
    let dtype = dtype::known(values.data_type).ok_or_else(|| {
        about(&format_args!(
            "fx has no elements of type {}",
            dtype::name(values.data_type)
        ))
    })?;
    let width = dtype.size_in_bytes();
    if (count as u64).saturating_mul(width as u64) > limit {
        return Err(about(
            &"it would take more bytes than `Limits::constant_bytes`",
        ));
    }
    let (_, there) = shape_of(&values.dims, &what)?;
    let elements = raw(values, there, width, folder).map_err(|e| about(&e))?;
    let places = match &proto.indices {
        Some(indices) => tensor(indices, folder, false)?,
        None => Tensor::from_vec(Vec::<i64>::new(), 0)?,
    };
    let is_linear = places.dims()?.len() == 1;
    let places = places.to_vec()?;
    let rank = if is_linear { 1 } else { shape.len() };
    if places.len() != there.saturating_mul(rank) {
        return Err(about(&format_args!(
            "{there} elements have {} numbers for their places",
            places.len()
        )));
    }
    let mut bytes = vec![0u8; count * width];
    for (at, element) in elements.chunks_exact(width.max(1)).enumerate() {
        let mut place = Some(0usize);
        for (dim, index) in places[at * rank..(at + 1) * rank].iter().enumerate() {
            let size = if is_linear { count } else { shape[dim] };
            let is_inside = *index >= 0.0 && (*index as usize) < size;
            place = place
                .filter(|_| is_inside)
                .map(|place| if is_linear { 0 } else { place * size } + *index as usize);
        }
        let place = place.ok_or_else(|| about(&format_args!("element {at} lies outside of it")))?;
        bytes[place * width..(place + 1) * width].copy_from_slice(element);
    }
    let tensor = of_bytes(&bytes, dtype, &shape, false).map_err(|e| about(&e))?;
    Ok((values.name.clone(), tensor))
}
