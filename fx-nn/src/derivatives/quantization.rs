//! Derivatives of rounding to integers, for training: as if nothing were rounded, where a number is within the range.

use fx_core::value::DType;

use super::derivatives;
use crate::func::known;
use crate::ops::{self, Affine};
use crate::tensor::Tensor;

derivatives! {
    ops::fake_quantize_affine => |call| call.give("x", |call| {
        let (x, axis): (Tensor, Option<i64>) = (call.arg("x")?, call.arg("axis")?);
        let (scale, zero_point) = (call.arg("scale")?, call.arg("zero_point")?);
        let affine = Affine::along(scale, zero_point, axis, Some(known::rank(&x)?))?;
        let wide = ops::to_dtype(&x, DType::F32)?;
        let within = affine.is_within(&wide, call.arg("quant_min")?, call.arg("quant_max")?)?;
        ops::r#where(&within, call.grad()?, 0.0)
    });
}
