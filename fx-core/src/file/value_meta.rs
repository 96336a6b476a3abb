//! `ValueMeta` as JSON: values that are known as arguments are, tensors and open numbers by tags.
//!
//! Invariant: an entry loads as it was saved, with the same kinds.

use super::arguments::{from_argument, plain_argument, to_argument, to_device, to_dtype};
use super::json::{self, Json, JsonMap, tag};
use super::limits::check_depth;
use super::names::argument::{DICT, SLICE, TUPLE};
use super::names::value_kind::{OPAQUE, REPEATED, SIZE, UNKNOWN, UNRANKED};
use super::names::value_meta;
use crate::error::{Error, Result};
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
use crate::value::dim::Dim;
use crate::value::value::Value;

/// The kinds of numbers that a run decides.
const FLOAT: &str = "float";
const BOOL: &str = "bool";

pub(super) fn from_value_meta(meta: &ValueMeta, depth: usize) -> Result<Json> {
    check_depth(depth)?;
    let all = |items: &[ValueMeta]| -> Result<Json> {
        let items = items.iter().map(|item| from_value_meta(item, depth + 1));
        items.collect()
    };
    Ok(match meta {
        ValueMeta::Single(tensor) => from_tensor(tensor),
        ValueMeta::Int(dim) => match dim.as_number() {
            Some(number) => Json::from(number),
            None => tag(SIZE, dim.to_string()),
        },
        ValueMeta::Float(None) => tag(UNKNOWN, FLOAT),
        ValueMeta::Bool(None) => tag(UNKNOWN, BOOL),
        ValueMeta::Float(Some(number)) => plain(&Value::Float(*number))?,
        ValueMeta::Bool(Some(boolean)) => plain(&Value::Bool(*boolean))?,
        ValueMeta::List(items) => all(items)?,
        ValueMeta::Tuple(items) => tag(TUPLE, all(items)?),
        ValueMeta::Slice(ends) => tag(SLICE, all(&ends[..])?),
        ValueMeta::Dict(items) => {
            let pairs = items.iter().map(|(key, item)| {
                let item = from_value_meta(item, depth + 1)?;
                Ok(Json::Array(vec![Json::from(&**key), item]))
            });
            tag(DICT, pairs.collect::<Result<Vec<_>>>()?)
        }
        ValueMeta::Repeated(item, length) => {
            let item = from_value_meta(item, depth + 1)?;
            tag(REPEATED, vec![item, Json::from(length.to_string())])
        }
        ValueMeta::Plain(object @ (Value::Object(_) | Value::Proxy(_))) => {
            tag(OPAQUE, object.to_string())
        }
        ValueMeta::Plain(value) => plain(value)?,
        ValueMeta::Unranked(dtype) => {
            let dtype = dtype.map(|dtype| Json::from(dtype.name()));
            tag(UNRANKED, dtype.unwrap_or(Json::Null))
        }
        ValueMeta::Opaque(what) => tag(OPAQUE, &**what),
    })
}

fn plain(value: &Value) -> Result<Json> {
    from_argument(&plain_argument(value, 0)?, &|_| Err(no_node()))
}

fn no_node() -> Error {
    Error::saved("an entry names no node")
}

fn from_tensor(tensor: &TensorMeta) -> Json {
    let mut fields = JsonMap::new();
    fields.insert(value_meta::SHAPE.into(), from_dims(&tensor.shape));
    if let Some(dtype) = tensor.dtype {
        fields.insert(value_meta::DTYPE.into(), Json::from(dtype.name()));
    }
    if let Some(strides) = &tensor.strides {
        fields.insert(value_meta::STRIDES.into(), from_dims(strides));
    }
    if let Some(requires_grad) = tensor.requires_grad {
        fields.insert(value_meta::REQUIRES_GRAD.into(), Json::from(requires_grad));
    }
    if let Some(device) = tensor.device {
        fields.insert(value_meta::DEVICE.into(), Json::from(device.to_string()));
    }
    Json::Object(fields)
}

/// Known sizes as numbers, others as text.
fn from_dims(dims: &[Dim]) -> Json {
    let size = |dim: &Dim| match dim.as_known() {
        Some(size) => Json::from(size),
        None => Json::from(dim.to_string()),
    };
    dims.iter().map(size).collect()
}

fn to_dim(saved: &Json) -> Result<Dim> {
    if let Json::String(text) = saved {
        return text.parse();
    }
    let size = saved.as_u64().and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| json::expected("a size", saved))?;
    Ok(Dim::known(size))
}

pub(super) fn to_value_meta(saved: &Json, depth: usize) -> Result<ValueMeta> {
    check_depth(depth)?;
    match saved {
        Json::Array(_) => Ok(ValueMeta::List(items(saved, depth)?)),
        Json::Object(fields) if fields.contains_key(value_meta::SHAPE) => {
            to_tensor(fields).map(ValueMeta::from)
        }
        Json::Object(_) => {
            let (kind, inner) = json::tagged(saved)?;
            to_tagged(kind, inner, saved, depth).map_err(|e| e.inside(format_args!(".{kind}")))
        }
        // The text of a value, which schema 1 had.
        Json::String(_) => Err(json::expected("a value, or what is known of one", saved)),
        _ => to_plain(saved),
    }
}

fn items(saved: &Json, depth: usize) -> Result<Vec<ValueMeta>> {
    json::items(saved, |item| to_value_meta(item, depth + 1))
}

fn to_tagged(kind: &str, inner: &Json, saved: &Json, depth: usize) -> Result<ValueMeta> {
    Ok(match kind {
        SIZE => ValueMeta::Int(to_dim(inner)?),
        UNKNOWN => match json::text(inner)? {
            FLOAT => ValueMeta::Float(None),
            BOOL => ValueMeta::Bool(None),
            _ => return Err(json::expected("`float` or `bool`", inner)),
        },
        UNRANKED => ValueMeta::Unranked(match inner {
            Json::Null => None,
            dtype => Some(to_dtype(dtype)?),
        }),
        OPAQUE => ValueMeta::Opaque(json::text(inner)?.into()),
        TUPLE => ValueMeta::Tuple(items(inner, depth)?),
        SLICE => {
            let ends = <[ValueMeta; 3]>::try_from(items(inner, depth)?);
            let ends = ends.map_err(|_| json::expected("start, stop and step", inner))?;
            ValueMeta::Slice(Box::new(ends))
        }
        REPEATED => match json::array(inner)? {
            [item, length] => {
                let item = to_value_meta(item, depth + 1)?;
                ValueMeta::Repeated(Box::new(item), to_dim(length)?)
            }
            _ => return Err(json::expected("an item and a length", inner)),
        },
        DICT => ValueMeta::Dict(json::items(inner, |pair| match json::array(pair)? {
            [key, item] => Ok((json::text(key)?.into(), to_value_meta(item, depth + 1)?)),
            _ => Err(json::expected("a key and a value", pair)),
        })?),
        _ => to_plain(saved)?,
    })
}

fn to_plain(saved: &Json) -> Result<ValueMeta> {
    let argument = to_argument(saved, 0, &|_| Err(no_node()))?;
    let value = argument.to_value(&mut |_| Err(no_node()))?;
    Ok(ValueMeta::of(&value))
}

fn to_tensor(fields: &JsonMap) -> Result<TensorMeta> {
    let sizes = |sizes: &Json| json::items(sizes, to_dim);
    json::known_names(fields, &value_meta::ALL)?;
    let mut tensor = TensorMeta::new(json::part(fields, value_meta::SHAPE, sizes)?);
    tensor.dtype = json::optional(fields, value_meta::DTYPE, to_dtype)?;
    tensor.strides = json::optional(fields, value_meta::STRIDES, sizes)?;
    tensor.requires_grad = json::optional(fields, value_meta::REQUIRES_GRAD, json::boolean)?;
    tensor.device = json::optional(fields, value_meta::DEVICE, to_device)?;
    Ok(tensor)
}

/// An entry of schema 1, which had the text of a value in place of the value, as one of schema 2.
pub(super) fn upgrade_1(saved: &mut Json) {
    match saved {
        Json::String(text) => *saved = of_text(text),
        Json::Array(items) => items.iter_mut().for_each(upgrade_1),
        Json::Object(fields) => {
            if let Some(Json::Array(pairs)) = fields.get_mut(DICT) {
                let items = pairs.iter_mut().filter_map(|pair| pair.get_mut(1));
                items.for_each(upgrade_1);
            }
        }
        _ => {}
    }
}

fn of_text(text: &str) -> Json {
    match text {
        "None" => return Json::Null,
        "true" => return Json::from(true),
        "false" => return Json::from(false),
        "a number" => return tag(UNKNOWN, FLOAT),
        "a truth" => return tag(UNKNOWN, BOOL),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Json::from(number);
    }
    let number = text.parse().ok().map(Value::Float);
    let number = number.and_then(|number| plain(&number).ok());
    number.unwrap_or_else(|| tag(OPAQUE, text))
}
