//! `SiLU`: x · sigmoid(x).

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::Tensor;

/// x · sigmoid(x), also called swish.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![-2.0f32, 0.0, 8.0], 3)?;
/// let y = nn::SiLU::new().forward(&x)?;
/// let expected = Tensor::from_vec(vec![-0.238406f32, 0.0, 7.997317], 3)?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug, Default)]
pub struct SiLU {
    tag: Tag,
}

impl SiLU {
    /// The layer.
    pub fn new() -> Self {
        SiLU::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::SiLU")]
impl SiLU {
    /// Applies the layer to a tensor of any shape.
    ///
    /// # Errors
    /// Returns an error if the tensor's type has no such operation.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::silu(x)
    }
}
