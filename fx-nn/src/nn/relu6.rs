//! `ReLU6`: min(max(x, 0), 6).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// min(max(x, 0), 6).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 3.0, 8.0], 3)?;
/// assert_eq!(nn::ReLU6::new().forward(&x)?.to_vec()?, [0.0, 3.0, 6.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct ReLU6 {
    tag: Tag,
}

impl ReLU6 {
    /// The layer.
    pub fn new() -> Self {
        ReLU6::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::ReLU6")]
impl ReLU6 {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::relu6(x)
    }
}
