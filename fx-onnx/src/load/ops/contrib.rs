//! ONNX Runtime's own operators (`com.microsoft`), which its optimizer writes.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::nn::gemm;
use super::windows::{conv, convolution};
use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const DOMAIN: &str = "com.microsoft";

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
        let turned = |at: usize, batch: &str, matrix: &str| -> Result<Tensor> {
            let x = cx.tensor(at)?;
            // The rows of all matrices of the batch lie in the first dim.
            let x = if cx.flag(batch) {
                ops::movedim(&x, 0, -2)?
            } else {
                x
            };
            match cx.flag(matrix) {
                true => ops::transpose(&x, -1, -2),
                false => Ok(x),
            }
        };
        let a = turned(0, "transBatchA", "transA")?;
        let y = ops::matmul(&a, &turned(1, "transBatchB", "transB")?)?;
        cx.like(match cx.float("alpha", 1.0) {
            1.0 => y,
            alpha => (y * alpha)?,
        })
    })
    .domain(DOMAIN),
    op("FusedConv", |cx| {
        let y = first(conv(cx)?)?;
        after_product(cx, y)
    })
    .domain(DOMAIN)
    .check(convolution)
    .weights(&[1, 2]),
    op("FusedGemm", |cx| {
        let y = first(gemm(cx)?)?;
        let names = ["activation_alpha", "activation_beta"];
        cx.like(activated(y, &cx.text("activation", ""), |at, or| {
            names.get(at).map_or(or, |name| cx.float(name, or))
        })?)
    })
    .domain(DOMAIN)
    .makes(|of| of.products())
    .weights(&[1, 2]),
    op("EmbedLayerNormalization", embedded)
        .domain(DOMAIN)
        .check(|cx| (0..2).try_for_each(|at| rank(cx, at, 2..3)))
        .makes(|of| of.products()),
];

fn first(given: Vec<V>) -> Result<Tensor> {
    let first = given
        .first()
        .ok_or_else(|| Error::msg("a node gives nothing"))?;
    first.tensor()
}

/// What a fused convolution does behind its product: a sum with another image, and an activation.
pub(super) fn after_product(cx: &NodeCx<'_>, mut y: Tensor) -> Given {
    if cx.has(3) {
        y = (y + cx.tensor(3)?)?;
    }
    let params = cx.floats("activation_params").unwrap_or_default();
    cx.like(activated(y, &cx.text("activation", ""), |at, or| {
        params.get(at).map_or(or, |number| f64::from(*number))
    })?)
}

/// A function that is named by an attribute, with its numbers by their places, or what they are when left out.
fn activated(x: Tensor, name: &str, number: impl Fn(usize, f64) -> f64) -> Result<Tensor> {
    match name {
        "" => Ok(x),
        "Relu" => ops::relu(&x),
        "Sigmoid" => ops::sigmoid(&x),
        "Tanh" => ops::tanh(&x),
        "LeakyRelu" => ops::leaky_relu(&x, number(0, 0.01)),
        "Clip" => ops::clamp(
            &x,
            number(0, f64::from(f32::MIN)),
            number(1, f64::from(f32::MAX)),
        ),
        "HardSigmoid" => {
            let line = ((x * number(0, 0.2))? + number(1, 0.5))?;
            ops::clamp(&line, 0.0, 1.0)
        }
        "HardSwish" => ops::hardswish(&x),
        other => Err(Error::msg(format_args!("the activation `{other}`"))),
    }
}

/// The sum of the embeddings of words, places and segments, and its norm.
fn embedded(cx: &mut NodeCx<'_>) -> Given {
    let ids = cx.tensor(0)?;
    let of = |ids: &Tensor, table: usize| -> Result<Tensor> {
        ops::embedding(&as_type(ids, DType::I64)?, &cx.single(table)?, None)
    };
    let places = match cx.optional(8)? {
        Some(places) => places,
        None => ops::unsqueeze(&cx.numbers(ids.size(1)?)?, 0)?,
    };
    let mut sum = (of(&ids, 2)? + of(&places, 3)?)?;
    if cx.has(4) {
        sum = (sum + of(&cx.tensor(1)?, 4)?)?;
    }
    let eps = cx.float("epsilon", 1e-12);
    let apart = (&sum - ops::mean(&sum, -1, true)?)?;
    let square = ops::mean(&(&apart * &apart)?, -1, true)?;
    let root = ops::sqrt(&(square + eps)?)?;
    let y = (((apart / root)? * cx.single(5)?)? + cx.single(6)?)?;
    let seen = match cx.optional(7)? {
        Some(mask) => as_type(&mask.ne(0)?, DType::I32)?,
        None => ops::zeros_like(&as_type(&ids, DType::I32)?, None)?,
    };
    let seen = as_type(&ops::sum(&seen, [1], false)?, DType::I32)?;
    let dtype = cx.dtype(2)?;
    Ok(vec![
        V::of(as_type(&y, dtype)?, dtype),
        V::of(seen, DType::I32),
        V::of(as_type(&sum, dtype)?, dtype),
    ])
}

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
