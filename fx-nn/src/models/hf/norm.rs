//! `Norm`: a norm by the mean square, as Hugging Face's models round it.

use fx_core::prelude::*;
use fx_core::value::DType;

use crate::ops;
use crate::tensor::Tensor;

/// x / sqrt(mean(x²) + eps) over the last dim, rounded to the type of x, times `weight`.
///
/// [`nn::RMSNorm`](crate::nn::RMSNorm) multiplies by the weight before it rounds, which differs in half precision.
#[derive(Module, Clone, Debug)]
pub struct Norm {
    /// `[width]`.
    pub weight: Tensor,
    width: usize,
    eps: f64,
}

impl Norm {
    pub(super) fn new(width: usize, eps: f64) -> Result<Self> {
        Ok(Norm {
            weight: Tensor::ones(width)?.into_parameter()?,
            width,
            eps,
        })
    }
}

#[trace(path = "fx_nn::models::hf::norm::Norm")]
impl Norm {
    /// Applies the norm to `[.., width]`.
    ///
    /// # Errors
    /// Returns an error if the last dim of `x` differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let wide = x.to_dtype(DType::F32)?;
        let y = ops::rms_norm(&wide, self.width, None, self.eps)?;
        y.type_as(x)? * &self.weight
    }
}
