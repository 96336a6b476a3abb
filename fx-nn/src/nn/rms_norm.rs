//! `RMSNorm`: each sample over its root mean square.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::{Shape, Tensor};

/// y = x / sqrt(mean(x²) + eps) · weight, over the last dims of `x` `[.., normalized_shape]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![3.0f32, 4.0], 2)?;
/// let y = nn::RMSNorm::new(2)?.forward(&x)?;
/// let expected = Tensor::from_vec(vec![0.848528f32, 1.131371], 2)?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-6)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct RMSNorm {
    /// `[normalized_shape]`.
    pub weight: Option<Tensor>,
    /// The dims that are normalised together: the last ones.
    pub normalized_shape: Vec<usize>,
    /// Added to the mean square: 1e-6.
    pub eps: f64,
}

impl RMSNorm {
    /// A layer with weights of one: eps 1e-6.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(normalized_shape: impl Into<Shape>) -> Result<Self> {
        let Shape(normalized_shape) = normalized_shape.into();
        Ok(RMSNorm {
            weight: Some(parameter::constant(&normalized_shape, 1.0)?),
            normalized_shape,
            eps: 1e-6,
        })
    }
}

options!(RMSNorm { eps: f64 });
kept!(RMSNorm {
    elementwise_affine: [weight]
});

#[trace(leaf, path = "fx_nn::nn::RMSNorm")]
impl RMSNorm {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the last dims of `x` differ.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::rms_norm(
            x,
            self.normalized_shape.as_slice(),
            self.weight.as_ref(),
            self.eps,
        )
    }
}
