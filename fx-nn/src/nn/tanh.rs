//! `Tanh`: the hyperbolic tangent.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// The hyperbolic tangent.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.0, 0.5], 3)?;
/// let y = nn::Tanh::new().forward(&x)?;
/// let expected = Tensor::from_vec(vec![-0.964028f32, 0.0, 0.462117], 3)?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct Tanh {
    tag: Tag,
}

impl Tanh {
    /// The layer.
    pub fn new() -> Self {
        Tanh::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Tanh")]
impl Tanh {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::tanh(x)
    }
}
