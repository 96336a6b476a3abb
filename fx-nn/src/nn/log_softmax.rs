//! `LogSoftmax`: the logarithms of shares that sum to 1.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The logarithm of the softmax along `dim`, computed stably.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1000.0], 2)?;
/// assert_eq!(nn::LogSoftmax::new(-1).forward(&x)?.to_vec()?, [-1000.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LogSoftmax {
    /// The dim along which the shares sum to 1.
    pub dim: i64,
}

impl LogSoftmax {
    /// A layer for one dim.
    pub fn new(dim: i64) -> Self {
        LogSoftmax { dim }
    }
}

#[trace(leaf, path = "fx_nn::nn::LogSoftmax")]
impl LogSoftmax {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::log_softmax(x, self.dim)
    }
}
