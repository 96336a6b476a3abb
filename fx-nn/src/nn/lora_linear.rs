//! `LoraLinear`: a linear layer with a LoRA adapter.

use fx_core::{Error, Module, Result, trace};

use super::linear::Linear;
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// y = base(x) + scale · B (A x), for `x` of shape `[.., in_features]` (Hu et al. 2021, low-rank adaptation).
///
/// The base is frozen; A and B are trained, and have rank · (in_features + out_features) elements. B starts as zeros, so
/// that a new adapter changes nothing.
///
/// ```
/// use fx_nn::prelude::*;
/// let linear = nn::Linear::new(4, 5)?;
/// let adapted = nn::LoraLinear::from_linear(&linear, 2, 1.0)?;
/// let x = Tensor::rand((3, 4))?;
/// assert_eq!(adapted.forward(&x)?.to_vec()?, linear.forward(&x)?.to_vec()?);
/// assert_eq!(nn::variables(&adapted)?.len(), 2);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LoraLinear {
    /// The adapted layer: its tensors are buffers here, which are not trained.
    #[module(buffer)]
    pub base: Linear,
    /// A: `[rank, in_features]`.
    pub lora_a: Tensor,
    /// B: `[out_features, rank]`.
    pub lora_b: Tensor,
    /// The factor of the adapter's result; often called alpha / rank.
    pub scale: f64,
}

impl LoraLinear {
    /// An adapter of a rank beside a layer, whose tensors it shares without training them. A is initialised as the weight
    /// of a linear layer, B is zeros; both have the type of the layer's weight.
    ///
    /// # Errors
    /// Returns an error if the rank is 0 or beyond the layer's sizes, or a tensor is symbolic.
    pub fn from_linear(linear: &Linear, rank: usize, scale: f64) -> Result<Self> {
        let [rows, columns] = sizes(linear)?;
        if rank == 0 || rank > rows.min(columns) {
            return Err(Error::msg(format_args!(
                "lora: the rank is between 1 and the smaller size of the weight [{rows}, {columns}], not {rank}"
            )));
        }
        let dtype = linear.weight.dtype()?;
        let a = parameter::uniform(&[rank, columns], parameter::fan_in_bound(columns))?;
        let typed = |t: Tensor| t.detach()?.cast(dtype)?.into_parameter();
        Ok(LoraLinear {
            base: Linear {
                weight: linear.weight.detach()?,
                bias: linear.bias.as_ref().map(Tensor::detach).transpose()?,
            },
            lora_a: typed(a)?,
            lora_b: typed(parameter::constant(&[rows, rank], 0.0)?)?,
            scale,
        })
    }

    /// The linear layer that computes the same in one product: W + scale · B A, frozen.
    ///
    /// # Errors
    /// Returns an error if a tensor is symbolic.
    pub fn merged(&self) -> Result<Linear> {
        let (a, b) = (self.lora_a.detach()?, self.lora_b.detach()?);
        let change = (ops::matmul(&b, &a)? * self.scale)?;
        Ok(Linear {
            weight: (self.base.weight.detach()? + change)?,
            bias: self.base.bias.clone(),
        })
    }
}

/// The sizes of a linear layer's weight.
pub(super) fn sizes(linear: &Linear) -> Result<[usize; 2]> {
    let dims = linear.weight.dims()?;
    dims.try_into().map_err(|_| {
        Error::msg(format_args!(
            "a linear layer's weight is [out_features, in_features], not of shape {dims:?}"
        ))
    })
}

#[trace(leaf, path = "fx_nn::nn::LoraLinear")]
impl LoraLinear {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the last dim of `x` is not `in_features`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let low = ops::linear(x, &self.lora_a, None)?;
        let change = (ops::linear(&low, &self.lora_b, None)? * self.scale)?;
        self.base.forward(x)? + change
    }
}
