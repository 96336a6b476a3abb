//! Tensors as a line holds them: the bytes of a storage and the views that are taken of it; and what PyTorch gave, with
//! how far a result may be from it.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::IntoValue;
use fx_nn::{Error, Result};
use serde_json::Value as Json;

use crate::call::{dtype, float, sizes};

fn wrong(json: &Json) -> Error {
    let mut text = json.to_string();
    text.truncate(text.floor_char_boundary(200));
    Error::msg(format_args!("not a tensor: {text}"))
}

/// `size` bytes that the hexadecimal digits say; fewer digits are repeated.
fn bytes(digits: &str, size: usize) -> Option<Vec<u8>> {
    let once: Vec<u8> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<_>>()?;
    match once.len() {
        0 if size > 0 => None,
        _ => Some(once.iter().copied().cycle().take(size).collect()),
    }
}

fn dense(json: &Json) -> Result<(DType, Vec<usize>, Vec<u8>)> {
    let get = |name: &str| json.get(name).ok_or_else(|| wrong(json));
    let (dtype, shape) = (dtype(get("dtype")?)?, sizes(get("shape")?)?);
    let size = shape.iter().product::<usize>() * dtype.size_in_bytes();
    let digits = get("data")?.as_str().ok_or_else(|| wrong(json))?;
    let bytes = bytes(digits, size).ok_or_else(|| wrong(json))?;
    Ok((dtype, shape, bytes))
}

/// The tensor: its storage, then its views one after another.
pub(crate) fn parse(json: &Json) -> Result<Tensor> {
    view(&stored(json)?, json)
}

/// What the tensor is a view of.
pub(crate) fn stored(json: &Json) -> Result<Tensor> {
    let (dtype, shape, bytes) = dense(json)?;
    of_bytes(dtype, &shape, &bytes)
}

/// The views of what is stored, one after another.
pub(crate) fn view(stored: &Tensor, json: &Json) -> Result<Tensor> {
    let mut tensor = stored.clone();
    let views = json.get("views").and_then(Json::as_array);
    for view in views.into_iter().flatten() {
        tensor = viewed(&tensor, view)?;
    }
    Ok(tensor)
}

/// A tensor whose `dtype` and `shape` the JSON says, of these bytes.
///
/// # Errors
/// When they are not said.
pub fn dense_tensor(json: &Json, bytes: &[u8]) -> Result<Tensor> {
    let get = |name: &str| json.get(name).ok_or_else(|| wrong(json));
    of_bytes(dtype(get("dtype")?)?, &sizes(get("shape")?)?, bytes)
}

fn of_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
    if dtype == DType::I8 {
        let numbers = bytes.iter().map(|byte| i64::from(byte.cast_signed()));
        return Tensor::from_vec(numbers.collect::<Vec<i64>>(), shape)?.to_dtype(dtype);
    }
    let stored = match dtype {
        DType::Bool => DType::U8,
        other => other,
    };
    let data = candle_core::Tensor::from_raw_buffer(
        bytes,
        fx_nn::candle_dtype(stored)?,
        shape,
        &candle_core::Device::Cpu,
    );
    let tensor = Tensor::from(data.map_err(Error::other)?);
    if dtype == DType::Bool {
        return tensor.to_dtype(DType::Bool);
    }
    Ok(tensor)
}

fn viewed(tensor: &Tensor, view: &Json) -> Result<Tensor> {
    let part = |at: usize| view.get(at).ok_or_else(|| wrong(view));
    let number = |at: usize| part(at)?.as_i64().ok_or_else(|| wrong(view));
    match part(0)?.as_str() {
        Some("transpose") => tensor.transpose(number(1)?, number(2)?),
        Some("narrow") => {
            let (dim, start, stop) = (number(1)?, number(2)?, number(3)?);
            let mut index =
                vec![Value::Slice(Box::default()); usize::try_from(dim).map_err(Error::other)?];
            index.push(Value::Slice(Box::new([
                start.into_value(),
                stop.into_value(),
                number(4)?.into_value(),
            ])));
            tensor.i(AnyIndex(Value::Tuple(index.into())))
        }
        Some("expand") => tensor.expand(sizes(part(1)?)?),
        _ => Err(wrong(view)),
    }
}

/// An index that is known when the program runs.
pub struct AnyIndex(pub Value);

impl fx_nn::Index for AnyIndex {
    fn into_index(self) -> Value {
        self.0
    }
}

/// A value that PyTorch gave.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Several values.
    List(Vec<Expected>),
    /// A tensor.
    Tensor {
        /// The sizes.
        shape: Vec<usize>,
        /// The element type.
        dtype: DType,
        /// The elements as numbers; integers are whole.
        elements: Elements,
        /// How far an element may be from them.
        tolerance: f64,
        /// How far PyTorch's own result moves if each input moves by a step of its type.
        spread: f64,
    },
}

/// The elements of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// Integers and truth values.
    Whole(Vec<i64>),
    /// Floats.
    Float(Vec<f64>),
}

impl Elements {
    /// The elements that little-endian bytes hold.
    fn of(dtype: DType, bytes: &[u8]) -> Elements {
        macro_rules! each {
            ($t:ty, $variant:ident, |$n:ident| $wide:expr) => {
                Elements::$variant(
                    bytes
                        .as_chunks::<{ size_of::<$t>() }>()
                        .0
                        .iter()
                        .map(|b| {
                            let $n = <$t>::from_le_bytes(*b);
                            $wide
                        })
                        .collect(),
                )
            };
        }
        match dtype {
            DType::Bool | DType::U8 => each!(u8, Whole, |n| n.into()),
            DType::U32 => each!(u32, Whole, |n| n.into()),
            DType::I16 => each!(i16, Whole, |n| n.into()),
            DType::I32 => each!(i32, Whole, |n| n.into()),
            DType::I64 => each!(i64, Whole, |n| n),
            DType::BF16 => each!(half::bf16, Float, |n| n.to_f64()),
            DType::F16 => each!(half::f16, Float, |n| n.to_f64()),
            DType::F32 => each!(f32, Float, |n| n.into()),
            DType::F64 => each!(f64, Float, |n| n),
            _ => Elements::Whole(Vec::new()),
        }
    }
}

impl Expected {
    /// Reads a value.
    pub(crate) fn parse(json: &Json) -> Result<Expected> {
        Ok(match json {
            Json::Null => Expected::None,
            Json::Bool(truth) => Expected::Bool(*truth),
            Json::Number(number) => match number.as_i64() {
                Some(n) => Expected::Int(n),
                None => Expected::Float(float(json)?),
            },
            Json::Array(items) => {
                Expected::List(items.iter().map(Expected::parse).collect::<Result<_>>()?)
            }
            Json::Object(_) if json.get("float").is_some() => {
                Expected::Float(float(&json["float"])?)
            }
            Json::Object(_) => {
                let (dtype, shape, bytes) = dense(json)?;
                let number = |key: &str| json.get(key).map_or(Ok(0.0), float);
                Expected::Tensor {
                    elements: Elements::of(dtype, &bytes),
                    tolerance: number("tolerance")?,
                    spread: number("spread")?,
                    shape,
                    dtype,
                }
            }
            Json::String(_) => return Err(wrong(json)),
        })
    }
}

/// A result's shape, element type and elements.
///
/// # Errors
/// When it has no data.
pub fn elements(tensor: &Tensor) -> Result<(Vec<usize>, DType, Elements)> {
    let data = Object::to_data(tensor)?;
    let elements = Elements::of(data.dtype(), &data.bytes()?);
    Ok((data.shape().to_vec(), data.dtype(), elements))
}
