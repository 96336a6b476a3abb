//! `LayerNorm`: each sample normalised by its own statistics.

use fx_core::{Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::{Shape, Tensor};

/// y = (x - mean) / sqrt(var + eps) · weight + bias, over the last dims of `x` `[.., normalized_shape]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 3.0, 2.0, 6.0], (2, 2))?;
/// let y = nn::LayerNorm::new(2)?.forward(&x)?;
/// let expected = Tensor::from_vec(vec![-1.0f32, 1.0, -1.0, 1.0], (2, 2))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LayerNorm {
    /// `[normalized_shape]`.
    pub weight: Option<Tensor>,
    /// `[normalized_shape]`.
    pub bias: Option<Tensor>,
    /// The dims that are normalised together: the last ones.
    pub normalized_shape: Vec<usize>,
    /// Added to the variance: 1e-5.
    pub eps: f64,
}

impl LayerNorm {
    /// A layer with weights of one and biases of zero: eps 1e-5.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(normalized_shape: impl Into<Shape>) -> Result<Self> {
        let Shape(normalized_shape) = normalized_shape.into();
        Ok(LayerNorm {
            weight: Some(parameter::constant(&normalized_shape, 1.0)?),
            bias: Some(parameter::constant(&normalized_shape, 0.0)?),
            normalized_shape,
            eps: 1e-5,
        })
    }
}

options!(LayerNorm { eps: f64 });
kept!(LayerNorm {
    elementwise_affine: [weight, bias],
    bias: [bias]
});

#[trace(leaf, path = "fx_nn::nn::LayerNorm")]
impl LayerNorm {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the last dims of `x` differ.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::layer_norm(
            x,
            self.normalized_shape.as_slice(),
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.eps,
        )
    }
}
