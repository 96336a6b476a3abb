//! `Sigmoid`: 1 / (1 + exp(-x)).

use fx_core::{Module, Result, Tag, trace};

use crate::ops;
use crate::tensor::Tensor;

/// 1 / (1 + exp(-x)).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.0, 8.0], 3)?;
/// assert_eq!(nn::Sigmoid::new().forward(&x)?.to_vec()?[1], 0.5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Sigmoid {
    tag: Tag,
}

impl Sigmoid {
    /// The layer.
    pub fn new() -> Self {
        Sigmoid::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Sigmoid")]
impl Sigmoid {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// When the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::sigmoid(x)
    }
}
