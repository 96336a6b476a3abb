//! ONNX Runtime's own operators of numbers of fewer bits (`com.microsoft`).

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::contrib::DOMAIN;
use super::quant::{Scaled, held};
use crate::load::checks::at_least;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("QLinearAdd", |cx| joined(cx, |a, b| a + b))
        .domain(DOMAIN)
        .any_type(),
    op("QLinearMul", |cx| joined(cx, |a, b| a * b))
        .domain(DOMAIN)
        .any_type(),
    op("QLinearSigmoid", |cx| alone(cx, ops::sigmoid))
        .domain(DOMAIN)
        .any_type(),
    op("QLinearLeakyRelu", |cx| {
        let slope = cx.float("alpha", 0.01);
        alone(cx, |x| ops::leaky_relu(x, slope))
    })
    .domain(DOMAIN)
    .any_type(),
    op("MatMulIntegerToFloat", |cx| {
        let wide = |at: usize, zero: usize| -> Result<Tensor> {
            let x = as_type(&cx.tensor(at)?, DType::F64)?;
            match cx.optional(zero)? {
                Some(zero) => x - as_type(&zero, DType::F64)?,
                None => Ok(x),
            }
        };
        let product = as_type(&ops::matmul(&wide(0, 4)?, &wide(1, 5)?)?, DType::F32)?;
        let y = (product * (cx.tensor(2)? * cx.tensor(3)?)?)?;
        let y = match cx.optional(6)? {
            Some(bias) => (y + bias)?,
            None => y,
        };
        cx.of(y, DType::F32)
    })
    .domain(DOMAIN)
    .any_type()
    .makes(|of| of.products()),
    op("DynamicQuantizeMatMul", |cx| {
        let rank = cx.rank(1)?;
        let rows = cx
            .shape(1)?
            .get(rank.saturating_sub(2))
            .and_then(|size| size.as_number());
        let rows = rows.ok_or_else(|| Error::msg("a weight whose rows are not counted"))?;
        let zero = cx.optional(3)?;
        let scaled = Scaled::new(&cx.tensor(1)?, &cx.tensor(2)?, zero.as_ref(), rows)?;
        let y = scaled.of(&cx.tensor(0)?)?;
        let y = match cx.optional(4)? {
            Some(bias) => (y + bias)?,
            None => y,
        };
        cx.of(y, DType::F32)
    })
    .domain(DOMAIN)
    .any_type()
    .makes(|of| of.products()),
    op("MatMulNBits", |cx| {
        let weight = unpacked(cx)?;
        let bias = cx.has(5).then(|| cx.single(5)).transpose()?;
        Ok(vec![cx.rounded(&ops::linear(
            &cx.single(0)?,
            &weight,
            bias.as_ref(),
        )?)?])
    })
    .domain(DOMAIN)
    .check(|cx| {
        at_least(cx, "block_size", 16)?;
        at_least(cx, "N", 1)?;
        at_least(cx, "K", 1)
    })
    .makes(|of| of.products()),
];

/// A quantized input, whose scale and zero point stand behind it.
fn apart(cx: &NodeCx<'_>, at: usize) -> Result<Tensor> {
    let mut x = as_type(&cx.tensor(at)?, DType::F32)?;
    if cx.has(at + 2) {
        x = (x - as_type(&cx.tensor(at + 2)?, DType::F32)?)?;
    }
    x * cx.tensor(at + 1)?
}

/// Numbers as those of few bits, by the scale and the zero point at a place.
fn packed(cx: &NodeCx<'_>, y: &Tensor, at: usize) -> Given {
    let mut y = ops::round(&(y / cx.tensor(at)?)?, 0)?;
    if cx.has(at + 1) {
        y = (y + as_type(&cx.tensor(at + 1)?, DType::F32)?)?;
    }
    Ok(vec![held(&y, cx.dtype(0)?)?])
}

fn joined(cx: &NodeCx<'_>, compute: impl Fn(Tensor, Tensor) -> Result<Tensor>) -> Given {
    packed(cx, &compute(apart(cx, 0)?, apart(cx, 3)?)?, 6)
}

fn alone(cx: &NodeCx<'_>, compute: impl Fn(&Tensor) -> Result<Tensor>) -> Given {
    packed(cx, &compute(&apart(cx, 0)?)?, 3)
}

/// Numbers of a few bits each, of bytes: the lowest bits first, along the last dim.
fn parts(x: &Tensor, bits: i64) -> Result<Tensor> {
    let x = as_type(x, DType::I64)?;
    let count = 8 / bits;
    if count == 1 {
        return Ok(x);
    }
    let part = |at: i64| ops::remainder(&ops::floor_divide(&x, 1i64 << (bits * at))?, 1i64 << bits);
    let all = (0..count).map(part).collect::<Result<Vec<Tensor>>>()?;
    ops::flatten(&ops::stack(&all, -1)?, -2, -1)
}

/// The matrix `[N, K]` of a node whose weight is blocks of few bits.
fn unpacked(cx: &NodeCx<'_>) -> Result<Tensor> {
    let (bits, block) = (cx.int("bits", 4), cx.int("block_size", 32));
    let (rows, columns) = (cx.int("N", 1), cx.int("K", 1));
    if !matches!(bits, 2 | 4 | 8) || cx.has(4) {
        return Err(Error::msg(format_args!(
            "a weight of {bits} bits, or in an order of its own"
        )));
    }
    let blocks = (columns + block - 1) / block;
    let whole = ops::reshape(&parts(&cx.tensor(1)?, bits)?, [rows, blocks, block])?;
    let whole = as_type(&whole, DType::F32)?;
    let zero = match cx.optional(3)? {
        None => None,
        Some(zero) if cx.dtype(3)?.is_floating_point() => Some(ops::reshape(
            &as_type(&zero, DType::F32)?,
            [rows, blocks, 1],
        )?),
        Some(zero) => {
            let zero = parts(&ops::reshape(&zero, [rows, -1])?, bits)?;
            let zero = ops::narrow(&zero, 1, 0, blocks)?;
            Some(ops::unsqueeze(&as_type(&zero, DType::F32)?, 2)?)
        }
    };
    let apart = match zero {
        Some(zero) => (whole - zero)?,
        None => (whole - (1i64 << (bits - 1)) as f64)?,
    };
    let scale = ops::reshape(&cx.single(2)?, [rows, blocks, 1])?;
    let matrix = ops::reshape(&(apart * scale)?, [rows, blocks * block])?;
    ops::narrow(&matrix, 1, 0, columns)
}
