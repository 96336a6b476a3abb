//! `Linear`: y = x Wᵀ + b.

use fx_core::{Module, Result, trace};

use super::options::kept;
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = x Wᵀ + b, for `x` of shape `[.., in_features]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Linear::new(2, 3)?;
/// layer.weight = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (3, 2))?;
/// layer.bias = Some(Tensor::from_vec(vec![0.5f32, 0.0, -1.0], 3)?);
/// let y = layer.forward(&Tensor::from_vec(vec![1.0f32, 10.0], 2)?)?;
/// assert_eq!(y.to_vec()?, [21.5, 43.0, 64.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Linear {
    /// `[out_features, in_features]`.
    pub weight: Tensor,
    /// `[out_features]`.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// A layer with bias, initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(in_features: usize, out_features: usize) -> Result<Self> {
        let bound = parameter::fan_in_bound(in_features);
        Ok(Linear {
            weight: parameter::uniform(&[out_features, in_features], bound)?,
            bias: Some(parameter::uniform(&[out_features], bound)?),
        })
    }
}

kept!(Linear { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::Linear")]
impl Linear {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the last dim of `x` is not `in_features`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::linear(x, &self.weight, self.bias.as_ref())
    }
}
