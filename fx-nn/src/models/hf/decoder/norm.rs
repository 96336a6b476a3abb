//! `Norm`: the norms of decoders, as Hugging Face's models round them.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::config::{Config, NormKind};
use crate::ops;
use crate::tensor::Tensor;

/// A norm over the last dim.
#[derive(Module, Clone, Debug)]
pub struct Norm {
    /// `[width]`.
    pub weight: Tensor,
    /// `[width]`, of layer norms.
    pub bias: Option<Tensor>,
    width: usize,
    eps: f64,
    kind: NormKind,
}

impl Norm {
    pub(super) fn new(config: &Config, width: usize) -> Result<Self> {
        let bias = || Tensor::zeros(width)?.into_parameter();
        Ok(Norm {
            weight: Tensor::ones(width)?.into_parameter()?,
            bias: (config.norm == NormKind::Layer).then(bias).transpose()?,
            width,
            eps: config.rms_norm_eps,
            kind: config.norm,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Norm")]
impl Norm {
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if self.kind == NormKind::Layer {
            let weight = Some(&self.weight);
            return ops::layer_norm(x, self.width, weight, self.bias.as_ref(), self.eps);
        }
        // The mean square of halves is computed in single precision, as Hugging Face's models do.
        let wide = x.to_dtype(DType::F32)?;
        let y = ops::rms_norm(&wide, self.width, None, self.eps)?;
        match self.kind {
            NormKind::RMSPlusOne => (y * (self.weight.to_dtype(DType::F32)? + 1.0)?)?.type_as(x),
            _ => y.type_as(x)? * &self.weight,
        }
    }
}
