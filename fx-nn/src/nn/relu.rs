//! `ReLU`: max(x, 0).

use fx_core::{Module, Result, Tag, trace};

use crate::ops;
use crate::tensor::Tensor;

/// max(x, 0).
#[derive(Module, Clone, Debug, Default)]
pub struct ReLU {
    tag: Tag,
}

impl ReLU {
    /// The layer.
    pub fn new() -> Self {
        ReLU::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::ReLU")]
impl ReLU {
    /// Applies the layer.
    ///
    /// # Errors
    /// When the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::relu(x)
    }
}
