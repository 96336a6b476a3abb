//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;

/// Where a function stands.
#[derive(Module)]
pub struct Code {
    /// Tells it from others.
    pub tag: Tag,
}

#[trace]
impl Code {
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
