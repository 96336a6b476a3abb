//! ONNX Runtime's own operators (`com.microsoft`), which its optimizer writes.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V};

const DOMAIN: &str = "com.microsoft";

pub(super) const TABLE: &[Operator] = &[
    op("SkipLayerNormalization", |cx| skipped(cx, true))
        .domain(DOMAIN)
        .check(|cx| rank(cx, 0, 1..)),
    op("SkipSimplifiedLayerNormalization", |cx| skipped(cx, false))
        .domain(DOMAIN)
        .check(|cx| rank(cx, 0, 1..)),
    op("Gelu", |cx| {
        let x = cx.tensor(0)?;
        cx.like(ops::gelu(&x, "none")?)
    })
    .domain(DOMAIN),
    op("BiasGelu", |cx| {
        let (x, bias) = (cx.single(0)?, cx.single(1)?);
        Ok(vec![cx.rounded(&ops::gelu(&(x + bias)?, "none")?)?])
    })
    .domain(DOMAIN),
    op("FastGelu", |cx| {
        let mut x = cx.single(0)?;
        if cx.has(1) {
            x = (x + cx.single(1)?)?;
        }
        Ok(vec![cx.rounded(&ops::gelu(&x, "tanh")?)?])
    })
    .domain(DOMAIN),
    op("QuickGelu", |cx| {
        let (x, alpha) = (cx.single(0)?, cx.float("alpha", 1.702));
        let gate = ops::sigmoid(&(&x * alpha)?)?;
        Ok(vec![cx.rounded(&(x * gate)?)?])
    })
    .domain(DOMAIN),
    op("FusedMatMul", |cx| {
        let turned = |at: usize, name: &str| -> Result<Tensor> {
            let x = cx.tensor(at)?;
            match cx.flag(name) {
                true => ops::transpose(&x, -1, -2),
                false => Ok(x),
            }
        };
        if cx.flag("transBatchA") || cx.flag("transBatchB") {
            return Err(Error::msg("a product that turns dims of the batch"));
        }
        let y = ops::matmul(&turned(0, "transA")?, &turned(1, "transB")?)?;
        cx.like(match cx.float("alpha", 1.0) {
            1.0 => y,
            alpha => (y * alpha)?,
        })
    })
    .domain(DOMAIN),
];

/// The norm of a sum of two inputs and a bias; with means, or by the mean of squares alone.
fn skipped(cx: &mut NodeCx<'_>, centred: bool) -> Given {
    let (x, skip, gamma) = (cx.single(0)?, cx.single(1)?, cx.single(2)?);
    let eps = cx.float("epsilon", 1e-12);
    let mut sum = (x + skip)?;
    let (beta_at, bias_at) = if centred { (3, 4) } else { (9, 3) };
    if cx.has(bias_at) {
        sum = (sum + cx.single(bias_at)?)?;
    }
    let mean = match centred {
        true => Some(ops::mean(&sum, -1, true)?),
        false => None,
    };
    let apart = match &mean {
        Some(mean) => (&sum - mean)?,
        None => sum.clone(),
    };
    let square = ops::mean(&(&apart * &apart)?, -1, true)?;
    let root = ops::reciprocal(&ops::sqrt(&(square + eps)?)?)?;
    let mut y = ((apart * &root)? * gamma)?;
    if cx.has(beta_at) {
        y = (y + cx.single(beta_at)?)?;
    }
    let mean = match mean {
        Some(mean) => mean,
        None => ops::zeros_like(&root, None)?,
    };
    Ok(vec![
        cx.rounded(&y)?,
        V::of(mean, DType::F32),
        V::of(root, DType::F32),
        cx.rounded(&sum)?,
    ])
}
