//! `TensorMeta`: what is known of a tensor without its data.

use std::fmt;

use crate::error::{Error, Result};
use crate::value::device::Device;
use crate::value::dim::Dim;
use crate::value::dtype::DType;
use crate::value::object::Object;

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
    pub(super) fn of(object: &dyn Object) -> Option<Self> {
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
