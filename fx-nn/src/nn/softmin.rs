//! `Softmin`: shares that are large where x is small.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The softmax of -x along `dim`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1000.0], 2)?;
/// assert_eq!(nn::Softmin::new(-1).forward(&x)?.to_vec()?, [1.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Softmin {
    /// The dim along which the shares sum to 1.
    pub dim: i64,
}

impl Softmin {
    /// A layer for one dim.
    pub fn new(dim: i64) -> Self {
        Softmin { dim }
    }
}

#[trace(leaf, path = "fx_nn::nn::Softmin")]
impl Softmin {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::softmin(x, self.dim)
    }
}
