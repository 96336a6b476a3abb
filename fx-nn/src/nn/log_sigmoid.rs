//! `LogSigmoid`: the logarithm of the sigmoid.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// log(sigmoid(x)), without overflow.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-1000.0f32, 1000.0], 2)?;
/// assert_eq!(nn::LogSigmoid::new().forward(&x)?.to_vec()?, [-1000.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct LogSigmoid {
    tag: Tag,
}

impl LogSigmoid {
    /// The layer.
    pub fn new() -> Self {
        LogSigmoid::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::LogSigmoid")]
impl LogSigmoid {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::logsigmoid(x)
    }
}
