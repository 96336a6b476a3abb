//! `GLU`: one half gates the other.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// The first half of x along `dim`, times the sigmoid of the second.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 5.0, 0.0, 0.0], 4)?;
/// assert_eq!(nn::GLU::default().forward(&x)?.to_vec()?, [1.5, 2.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct GLU {
    /// The dim that is split: the last one.
    pub dim: i64,
}

impl Default for GLU {
    /// The last dim.
    fn default() -> Self {
        GLU { dim: -1 }
    }
}

options!(GLU { dim: i64 });

#[trace(leaf, path = "fx_nn::nn::GLU")]
impl GLU {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float, or has no such dim of an even size.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::glu(x, self.dim)
    }
}
