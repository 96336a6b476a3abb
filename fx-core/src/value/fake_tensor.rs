//! `FakeTensor`: shape, type and device of a tensor without data.
//!
//! Invariant: `shape` is there if all sizes are known.

use std::fmt;
use std::sync::Arc;

use super::device::Device;
use super::dim::Dim;
use super::dtype::DType;

/// A tensor without data: what a tensor type holds for one that is made by its shape
/// ([`Traced::from_fake`](crate::tensor::Traced::from_fake)). A clone is the same tensor.
#[derive(Clone)]
pub struct FakeTensor(Arc<Content>);

struct Content {
    dims: Vec<Dim>,
    /// The sizes, if all are known.
    shape: Option<Vec<usize>>,
    dtype: Option<DType>,
    device: Option<Device>,
    requires_grad: bool,
}

impl FakeTensor {
    /// A tensor of these sizes.
    pub fn new(dims: Vec<Dim>, dtype: Option<DType>, device: Option<Device>) -> Self {
        FakeTensor(Arc::new(Content {
            shape: Dim::all_known(&dims),
            dims,
            dtype,
            device,
            requires_grad: false,
        }))
    }

    /// Another tensor like this, of which gradients are computed, or not.
    #[must_use]
    pub fn with_grad(&self, requires_grad: bool) -> Self {
        let Content {
            dims,
            shape,
            dtype,
            device,
            ..
        } = &*self.0;
        FakeTensor(Arc::new(Content {
            dims: dims.clone(),
            shape: shape.clone(),
            dtype: *dtype,
            device: *device,
            requires_grad,
        }))
    }

    /// The sizes.
    pub fn dims(&self) -> &[Dim] {
        &self.0.dims
    }

    /// The sizes, if all are known.
    pub fn shape(&self) -> Option<&[usize]> {
        self.0.shape.as_deref()
    }

    /// The element type.
    pub fn dtype(&self) -> Option<DType> {
        self.0.dtype
    }

    /// The device.
    pub fn device(&self) -> Option<Device> {
        self.0.device
    }

    /// Whether gradients are computed for it.
    pub fn requires_grad(&self) -> bool {
        self.0.requires_grad
    }

    /// The identity: equal for clones alone.
    pub fn id(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }
}

impl fmt::Debug for FakeTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.0.dtype.map_or("", DType::name);
        write!(f, "fake {dtype}{:?}", self.0.dims)
    }
}
