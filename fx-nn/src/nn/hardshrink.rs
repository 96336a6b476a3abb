//! `Hardshrink`: 0 near 0.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// x outside of [-lambd, lambd], and 0 within.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.25, 0.75], 3)?;
/// assert_eq!(nn::Hardshrink::default().forward(&x)?.to_vec()?, [-2.0, 0.0, 0.75]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Hardshrink {
    /// The distance from 0 up to which it is 0: 0.5.
    pub lambd: f64,
}

impl Default for Hardshrink {
    /// PyTorch's numbers.
    fn default() -> Self {
        Hardshrink { lambd: 0.5 }
    }
}

options!(Hardshrink { lambd: f64 });

#[trace(leaf, path = "fx_nn::nn::Hardshrink")]
impl Hardshrink {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::hardshrink(x, self.lambd)
    }
}
