//! `Generated`, generated from a traced graph of 24 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// Tells it from others.
    pub tag: Tag,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(_saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated { tag: Tag::default() })
    }
}

impl Generated {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Generated {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor, gate: &Tensor, scale: &Tensor) -> Result<Tensor> {
        let rms_norm = fx_nn::ops::rms_norm(x, [8], Some(scale), 1e-6)?;
        let mul = (&rms_norm * gate)?;
        let neg = mul.neg()?;
        let exp = neg.exp()?;  drop(neg);
        let add_1 = (&exp + 1.0)?;  drop(exp);
        let reciprocal = add_1.reciprocal()?;  drop(add_1);
        let mul_1 = (&mul * &reciprocal)?;  drop(mul); drop(reciprocal);
        let amax = mul_1.amax_keepdim(-1)?;
        let sub = (&mul_1 - &amax)?;  drop(mul_1); drop(amax);
        let exp_1 = sub.exp()?;  drop(sub);
        let sum = exp_1.sum_keepdim(-1)?;
        let truediv = (&exp_1 / &sum)?;  drop(exp_1); drop(sum);
        let mul_2 = (&rms_norm * 0.7071067811865476)?;
        let erf = mul_2.erf()?;  drop(mul_2);
        let add_2 = (&erf + 1.0)?;  drop(erf);
        let mul_3 = (&rms_norm * 0.5)?;  drop(rms_norm);
        let mul_4 = (&add_2 * &mul_3)?;  drop(add_2); drop(mul_3);
        let add = (&truediv + &mul_4)?;  drop(truediv); drop(mul_4);
        let gt = (&add > 0.0)?;
        let mul_5 = (&gt * &add)?;  drop(gt); drop(add);
        Ok(mul_5)
    }
}
