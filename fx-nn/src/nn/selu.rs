//! `SELU`: ELU that keeps mean and variance.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// ELU with the slope and the bottom that keep a mean of 0 and a variance of 1.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f64, 1.0], 2)?;
/// assert_eq!(nn::SELU::new().forward(&x)?.to_vec()?, [0.0, 1.0507009873554805]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct SELU {
    tag: Tag,
}

impl SELU {
    /// The layer.
    pub fn new() -> Self {
        SELU::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::SELU")]
impl SELU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor is not float.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::selu(x)
    }
}
