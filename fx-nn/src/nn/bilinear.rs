//! `Bilinear`: y = x1 · W · x2 + b.

use fx_core::{Module, Result, trace};

use super::options::kept;
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = x1 · W · x2 + b, for `x1` `[.., in1_features]` and `x2` `[.., in2_features]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::Bilinear::new(1, 2, 1)?;
/// layer.weight = Tensor::from_vec(vec![1.0f32, 10.0], (1, 1, 2))?;
/// layer.bias = Some(Tensor::from_vec(vec![0.5f32], 1)?);
/// let (a, b) = (Tensor::from_vec(vec![2.0f32], 1)?, Tensor::from_vec(vec![3.0f32, 4.0], 2)?);
/// assert_eq!(layer.forward(&a, &b)?.to_vec()?, [86.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Bilinear {
    /// `[out_features, in1_features, in2_features]`.
    pub weight: Tensor,
    /// `[out_features]`.
    pub bias: Option<Tensor>,
}

impl Bilinear {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(in1_features: usize, in2_features: usize, out_features: usize) -> Result<Self> {
        let bound = parameter::fan_in_bound(in1_features);
        Ok(Bilinear {
            weight: parameter::uniform(&[out_features, in1_features, in2_features], bound)?,
            bias: Some(parameter::uniform(&[out_features], bound)?),
        })
    }
}

kept!(Bilinear { bias: [bias] });

#[trace(leaf, path = "fx_nn::nn::Bilinear")]
impl Bilinear {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit.
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        ops::bilinear(x1, x2, &self.weight, self.bias.as_ref())
    }
}
