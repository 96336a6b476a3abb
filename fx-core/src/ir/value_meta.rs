//! `ValueMeta`: the entry that tells what a node gave on a sample run, tensors by shape and type.

use std::fmt;

use super::meta::{Meta, MetaPolicy};
use crate::value::dtype::DType;
use crate::value::value::Value;

/// A tensor's shape and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMeta {
    /// The sizes.
    pub shape: Vec<usize>,
    /// The element type, where the tensor says it.
    pub dtype: Option<DType>,
    /// Elements between neighbours along each dim, where the tensor says it.
    pub strides: Option<Vec<usize>>,
}

impl TensorMeta {
    /// How many elements there are; no more than `usize::MAX`, whatever a file said of the shape.
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1, |n, size| n.saturating_mul(*size))
    }

    /// The size in bytes, where the element type is known.
    pub fn bytes(&self) -> Option<usize> {
        Some(self.numel().saturating_mul(self.dtype?.size_in_bytes()))
    }
}

impl fmt::Display for TensorMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            Some(dtype) => write!(f, "{}{:?}", dtype.name(), self.shape),
            None => write!(f, "{:?}", self.shape),
        }
    }
}

/// What a node gave: a tensor's meta, or the structure of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueMeta {
    /// A tensor.
    Single(TensorMeta),
    /// A list or a tuple.
    Sequence(Vec<ValueMeta>),
    /// Named values.
    Dict(Vec<(String, ValueMeta)>),
    /// A plain value, as text.
    Plain(String),
}

impl Meta for ValueMeta {
    // A copy gives the same; what replaces a node may not.
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Recompute;
}

impl ValueMeta {
    /// Of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::List(items) | Value::Tuple(items) => {
                ValueMeta::Sequence(items.iter().map(ValueMeta::of).collect())
            }
            Value::Dict(map) => {
                let items = map.iter().map(|(k, v)| (k.to_string(), ValueMeta::of(v)));
                ValueMeta::Dict(items.collect())
            }
            value => match value
                .as_object()
                .and_then(|o| Some((o, o.shape()?.to_vec())))
            {
                Some((object, shape)) => ValueMeta::Single(TensorMeta {
                    shape,
                    dtype: object.dtype(),
                    strides: object.strides(),
                }),
                None => ValueMeta::Plain(value.to_string()),
            },
        }
    }

    /// The tensor's, if it is one tensor.
    pub fn tensor(&self) -> Option<&TensorMeta> {
        match self {
            ValueMeta::Single(meta) => Some(meta),
            _ => None,
        }
    }

    /// The size of all tensors in bytes, as far as their types are known.
    pub fn bytes(&self) -> usize {
        match self {
            ValueMeta::Single(meta) => meta.bytes().unwrap_or(0),
            ValueMeta::Sequence(items) => total(items.iter()),
            ValueMeta::Dict(items) => total(items.iter().map(|(_, v)| v)),
            ValueMeta::Plain(_) => 0,
        }
    }
}

fn total<'m>(items: impl Iterator<Item = &'m ValueMeta>) -> usize {
    items.fold(0, |sum, item| sum.saturating_add(item.bytes()))
}

impl fmt::Display for ValueMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueMeta::Single(meta) => meta.fmt(f),
            ValueMeta::Sequence(items) => {
                let items: Vec<String> = items.iter().map(ValueMeta::to_string).collect();
                write!(f, "({})", items.join(", "))
            }
            ValueMeta::Dict(items) => {
                let items: Vec<String> = items.iter().map(|(k, v)| format!("{k}: {v}")).collect();
                write!(f, "{{{}}}", items.join(", "))
            }
            ValueMeta::Plain(text) => f.write_str(text),
        }
    }
}
