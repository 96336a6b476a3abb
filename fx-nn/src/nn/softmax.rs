//! `Softmax`: shares that sum to 1.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// exp(x) divided by its sum along `dim`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 3f64.ln()], 2)?;
/// let y = nn::Softmax::new(-1).forward(&x)?.to_vec()?;
/// assert!((y[0] - 0.25).abs() < 1e-12 && (y[1] - 0.75).abs() < 1e-12);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Softmax {
    /// The dim along which the shares sum to 1.
    pub dim: i64,
}

impl Softmax {
    /// A layer for one dim.
    pub fn new(dim: i64) -> Self {
        Softmax { dim }
    }
}

#[trace(leaf, path = "fx_nn::nn::Softmax")]
impl Softmax {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::softmax(x, self.dim)
    }
}
