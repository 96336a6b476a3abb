//! `ReLU`: max(x, 0).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// max(x, 0).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 3.0, 8.0], 3)?;
/// assert_eq!(nn::ReLU::new().forward(&x)?.to_vec()?, [0.0, 3.0, 8.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
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
    /// Returns an error if the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::relu(x)
    }
}
