//! `ValueMeta`: the entry that describes a node's value on a sample run, tensors by shape and type.

use std::fmt;

use super::meta::{Meta, MetaPolicy};
use crate::error::{Error, Result};
use crate::value::device::Device;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::object::Object;
use crate::value::value::Value;

/// What is known about a tensor: its shape, and what else it reports.
///
/// ```
/// use fx_core::ir::TensorMeta;
/// use fx_core::value::{DType, Device};
/// let meta = TensorMeta::new([2, 3]).dtype(DType::F32).device(Device::Cpu);
/// assert_eq!((meta.numel(), meta.bytes()), (Some(6), Some(24)));
/// assert_eq!(meta.known_shape(), Some(vec![2, 3]));
/// assert_eq!(meta.to_string(), "float32[2, 3]");
/// assert_eq!(format!("{meta:#}"), "float32[2, 3], cpu");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorMeta {
    /// The sizes.
    pub shape: Vec<Dim>,
    /// The element type, if the tensor reports it.
    pub dtype: Option<DType>,
    /// The number of elements between neighbours along each dim, if the tensor reports it.
    pub strides: Option<Vec<Dim>>,
    /// Whether gradients are computed for it, if the tensor reports it.
    pub requires_grad: Option<bool>,
    /// The device that holds its elements, if the tensor reports it.
    pub device: Option<Device>,
}

impl TensorMeta {
    /// Creates a meta with a shape, from numbers or [`Dim`]s, and nothing else known.
    pub fn new<D: Into<Dim>>(shape: impl IntoIterator<Item = D>) -> Self {
        TensorMeta {
            shape: shape.into_iter().map(Into::into).collect(),
            dtype: None,
            strides: None,
            requires_grad: None,
            device: None,
        }
    }

    /// The meta of a tensor; `None` for other objects.
    fn of(object: &dyn Object) -> Option<Self> {
        Some(TensorMeta {
            shape: object.dims()?.into_owned(),
            dtype: object.dtype(),
            strides: object.strides(),
            requires_grad: object.requires_grad(),
            device: object.device(),
        })
    }

    /// Sets the element type.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Sets the number of elements between neighbours along each dim.
    #[must_use]
    pub fn strides<D: Into<Dim>>(mut self, strides: impl IntoIterator<Item = D>) -> Self {
        self.strides = Some(strides.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether gradients are computed for it.
    #[must_use]
    pub fn requires_grad(mut self, requires_grad: bool) -> Self {
        self.requires_grad = Some(requires_grad);
        self
    }

    /// Sets the device.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// The sizes as numbers, unless one is symbolic.
    pub fn known_shape(&self) -> Option<Vec<usize>> {
        Dim::all_known(&self.shape)
    }

    /// The number of elements, unless a size is symbolic; at most `usize::MAX`, whatever shape a
    /// file contained.
    pub fn numel(&self) -> Option<usize> {
        let mut sizes = self.shape.iter().map(Dim::as_known);
        sizes.try_fold(1, |n: usize, size| Some(n.saturating_mul(size?)))
    }

    /// The bytes of its elements, as an expression of the sizes.
    ///
    /// # Errors
    /// Returns an error if the element type is not known, or the number does not fit an `i64`.
    pub fn memory(&self) -> Result<Dim> {
        let dtype = self
            .dtype
            .ok_or_else(|| Error::msg(format_args!("the element type of {self} is not known")))?;
        Dim::product(&self.shape)? * Dim::known(dtype.size_in_bytes())
    }

    /// The size in bytes, if the sizes and the element type are known.
    pub fn bytes(&self) -> Option<usize> {
        Some(self.numel()?.saturating_mul(self.dtype?.size_in_bytes()))
    }
}

/// Element type and sizes; `{:#}` adds strides, device and `requires_grad`, if they are known.
impl fmt::Display for TensorMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dtype) = self.dtype {
            f.write_str(dtype.name())?;
        }
        write!(f, "{:?}", self.shape)?;
        if !f.alternate() {
            return Ok(());
        }
        if let Some(strides) = &self.strides {
            write!(f, ", strides {strides:?}")?;
        }
        if let Some(device) = &self.device {
            write!(f, ", {device}")?;
        }
        match self.requires_grad {
            Some(true) => f.write_str(", requires_grad"),
            _ => Ok(()),
        }
    }
}

/// The value of a node: a tensor's meta, or a structure of several.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueMeta {
    /// A tensor.
    Single(TensorMeta),
    /// A list or a tuple.
    Sequence(Vec<ValueMeta>),
    /// Named values.
    Dict(Vec<(String, ValueMeta)>),
    /// A whole number that a run knows.
    Size(Dim),
    /// A plain value, as text.
    Plain(String),
}

impl Meta for ValueMeta {
    // A copy has the same value; a replacement may not.
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Recompute;
}

impl ValueMeta {
    /// The meta of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::List(items) | Value::Tuple(items) => {
                ValueMeta::Sequence(items.iter().map(ValueMeta::of).collect())
            }
            Value::Dict(map) => {
                let items = map.iter().map(|(k, v)| (k.to_string(), ValueMeta::of(v)));
                ValueMeta::Dict(items.collect())
            }
            value => match value.as_object().and_then(TensorMeta::of) {
                Some(tensor) => ValueMeta::Single(tensor),
                None => ValueMeta::Plain(value.to_string()),
            },
        }
    }

    /// The tensor's meta, if the value is one tensor.
    pub fn tensor(&self) -> Option<&TensorMeta> {
        match self {
            ValueMeta::Single(meta) => Some(meta),
            _ => None,
        }
    }

    /// With other sizes in place of symbols.
    pub(crate) fn with(&self, of: &dyn Fn(&str) -> Option<Dim>) -> Result<Self> {
        let sizes = |dims: &[Dim]| dims.iter().map(|dim| dim.with(of)).collect::<Result<_>>();
        Ok(match self {
            ValueMeta::Single(meta) => {
                let strides = meta.strides.as_deref().map(sizes).transpose()?;
                ValueMeta::Single(TensorMeta {
                    shape: sizes(&meta.shape)?,
                    strides,
                    ..meta.clone()
                })
            }
            ValueMeta::Sequence(items) => ValueMeta::Sequence(
                items
                    .iter()
                    .map(|item| item.with(of))
                    .collect::<Result<_>>()?,
            ),
            ValueMeta::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| Ok((key.clone(), item.with(of)?)));
                ValueMeta::Dict(items.collect::<Result<_>>()?)
            }
            ValueMeta::Size(dim) => ValueMeta::Size(dim.with(of)?),
            ValueMeta::Plain(text) => ValueMeta::Plain(text.clone()),
        })
    }

    /// Whether any size in it is as asked for.
    pub(crate) fn any_dim(&self, is_it: &dyn Fn(&Dim) -> bool) -> bool {
        match self {
            ValueMeta::Single(meta) => meta.shape.iter().any(is_it),
            ValueMeta::Sequence(items) => items.iter().any(|item| item.any_dim(is_it)),
            ValueMeta::Dict(items) => items.iter().any(|(_, item)| item.any_dim(is_it)),
            ValueMeta::Size(dim) => is_it(dim),
            ValueMeta::Plain(_) => false,
        }
    }

    /// The bytes of all tensors in it, as an expression of their sizes.
    ///
    /// ```
    /// use fx_core::ir::{TensorMeta, ValueMeta};
    /// use fx_core::value::{DType, Dim};
    /// let rows = TensorMeta::new([Dim::symbol("n")?, 8.into()]).dtype(DType::F32);
    /// let meta = ValueMeta::Sequence(vec![ValueMeta::Single(rows.clone()), ValueMeta::Single(rows)]);
    /// assert_eq!(meta.memory()?.to_string(), "64*n");
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if an element type is not known, or the number does not fit an `i64`.
    pub fn memory(&self) -> Result<Dim> {
        let mut all: Box<dyn Iterator<Item = &ValueMeta>> = match self {
            ValueMeta::Single(meta) => return meta.memory(),
            ValueMeta::Sequence(items) => Box::new(items.iter()),
            ValueMeta::Dict(items) => Box::new(items.iter().map(|(_, item)| item)),
            ValueMeta::Size(_) | ValueMeta::Plain(_) => return Ok(Dim::known(0)),
        };
        all.try_fold(Dim::known(0), |sum, item| sum + item.memory()?)
    }

    /// The total size of all tensors in bytes, as far as their types are known.
    pub fn bytes(&self) -> usize {
        match self {
            ValueMeta::Single(meta) => meta.bytes().unwrap_or(0),
            ValueMeta::Sequence(items) => total(items.iter()),
            ValueMeta::Dict(items) => total(items.iter().map(|(_, v)| v)),
            ValueMeta::Size(_) | ValueMeta::Plain(_) => 0,
        }
    }
}

fn total<'m>(items: impl Iterator<Item = &'m ValueMeta>) -> usize {
    items.fold(0, |sum, item| sum.saturating_add(item.bytes()))
}

/// Shown like [`TensorMeta`], also with `{:#}`; structures are in parentheses and braces.
impl fmt::Display for ValueMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_full = f.alternate();
        let shown = |meta: &ValueMeta| match in_full {
            true => format!("{meta:#}"),
            false => meta.to_string(),
        };
        match self {
            ValueMeta::Single(meta) => meta.fmt(f),
            ValueMeta::Sequence(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                write!(f, "({})", items.join(", "))
            }
            ValueMeta::Dict(items) => {
                let items = items.iter().map(|(k, v)| format!("{k}: {}", shown(v)));
                let items: Vec<String> = items.collect();
                write!(f, "{{{}}}", items.join(", "))
            }
            ValueMeta::Size(dim) => dim.fmt(f),
            ValueMeta::Plain(text) => f.write_str(text),
        }
    }
}
