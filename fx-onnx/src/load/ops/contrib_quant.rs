//! ONNX Runtime's own operators of numbers of fewer bits (`com.microsoft`).

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::affine::Affine;
use super::contrib::DOMAIN;
use super::quant::{Bytes, Scaled, held};
use super::quant::{dequantized, quantized};
use super::windows::{image, pool, pool_windows};
use crate::load::checks::at_least;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, V, as_type};

pub(super) const TABLE: &[Operator] = &[
    op("QuantizeLinear", quantized)
        .domain(DOMAIN)
        .any_type()
        .makes(|of| of.first()),
    op("DequantizeLinear", dequantized)
        .domain(DOMAIN)
        .any_type()
        .integers(&[0])
        .makes(|of| of.first()),
    op("QLinearAdd", sum).domain(DOMAIN).any_type(),
    op("QLinearMul", |cx| {
        if cx.reader.is_reference {
            let dtype = cx.dtype(0)?;
            return packed(cx, &(apart(cx, 0)? * apart(cx, 3)?)?, 6, dtype);
        }
        let of = |at: usize| as_type(&cx.tensor(at)?, DType::F32);
        let beside = |at: usize| match cx.has(at + 2) {
            true => of(at)? - of(at + 2)?,
            false => of(at),
        };
        let scale = ((of(1)? * of(4)?)? / of(6)?)?;
        let mut y = ((beside(0)? * beside(3)?)? * scale)?;
        if cx.has(7) {
            y = (y + of(7)?)?;
        }
        Ok(vec![held(&ops::round(&y, 0)?, cx.dtype(0)?)?])
    })
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
    op("QLinearSoftmax", |cx| {
        let axis = cx.axis("axis", -1, cx.rank(0)?)?;
        if cx.int("opset", 13) < 13 && axis + 1 != cx.rank(0)? as i64 {
            return Err(Error::msg("a softmax over several dims"));
        }
        alone(cx, |x| ops::softmax(x, axis))
    })
    .domain(DOMAIN)
    .any_type(),
    op("QLinearGlobalAveragePool", |cx| {
        let rank = cx.rank(0)? as i64;
        let dims: Vec<i64> = match cx.flag("channels_last") {
            true => (1..rank - 1).collect(),
            false => (2..rank).collect(),
        };
        let shape = cx.shape(0)?;
        let count = dims.iter().map(|dim| shape[*dim as usize].as_number());
        let count: Option<i64> = count.product();
        let Some(count) = count.filter(|_| !cx.reader.is_reference) else {
            return alone(cx, |x| ops::mean(x, dims.clone(), true));
        };
        let of = |at: usize| as_type(&cx.tensor(at)?, DType::F32);
        let mut sum = ops::sum(&of(0)?, dims, true)?;
        if cx.has(2) {
            sum = (sum - (of(2)? * count as f64)?)?;
        }
        let y = ops::round(&(sum * (of(1)? / (of(3)? * count as f64)?)?)?, 0)?;
        let dtype = cx.dtype(0)?;
        behind(cx, y, 4, dtype)
    })
    .domain(DOMAIN)
    .check(image)
    .any_type(),
    op("QLinearAveragePool", |cx| {
        if cx.flag("channels_last") {
            return Err(Error::msg("a pool of images whose channels are last"));
        }
        let (x, dtype) = (apart(cx, 0)?, cx.dtype(0)?);
        let own = std::mem::replace(&mut cx.inputs[0], V::of(x, DType::F32));
        let mean = pool(cx, false)?;
        cx.inputs[0] = own;
        let mean = mean.first().map(V::tensor).transpose()?;
        let mean = mean.ok_or_else(|| Error::msg("a pool gives nothing"))?;
        packed(cx, &mean, 3, dtype)
    })
    .domain(DOMAIN)
    .check(pool_windows)
    .any_type(),
    op("QLinearConcat", |cx| {
        let count = cx.inputs.len().saturating_sub(2) / 3;
        let dtype = cx.dtype(2)?;
        let all = (0..count).map(|at| apart(cx, 2 + 3 * at));
        let all = all.collect::<Result<Vec<Tensor>>>()?;
        let axis = cx.axis("axis", 0, cx.rank(2)?)?;
        packed(cx, &ops::cat(&all, axis)?, 0, dtype)
    })
    .domain(DOMAIN)
    .any_type(),
    op("QGemm", |cx| {
        if cx.reader.is_reference && cx.has(7) && cx.float("alpha", 1.0) == 1.0 {
            return reference_gemm(cx);
        }
        let turned = |x: Tensor, name: &str| match cx.flag(name) {
            true => ops::t(&x),
            false => Ok(x),
        };
        // Of the right matrix, several zero points are one for each column of the product.
        let b = turned(as_type(&cx.tensor(3)?, DType::F64)?, "transB")?;
        let b = match cx.optional(5)? {
            Some(zero) => (b - as_type(&zero, DType::F64)?)?,
            None => b,
        };
        let a = turned(beside_zero(cx, 0, 2, DType::F64)?, "transA")?;
        let mut sum = ops::matmul(&a, &b)?;
        if cx.has(6) {
            sum = (sum + as_type(&cx.tensor(6)?, DType::F64)?)?;
        }
        let scale = ((cx.tensor(1)? * cx.float("alpha", 1.0))? * cx.tensor(4)?)?;
        let sum = as_type(&sum, DType::F32)?;
        if !cx.has(7) {
            return cx.of((sum * scale)?, DType::F32);
        }
        let y = ops::round(&(sum * (scale / cx.tensor(7)?)?)?, 0)?;
        let dtype = cx.dtype(0)?;
        behind(cx, y, 8, dtype)
    })
    .domain(DOMAIN)
    .any_type()
    .makes(|of| of.products())
    .integers(&[3, 6]),
    op("MatMulIntegerToFloat", |cx| {
        if cx.reader.is_reference {
            let x = Affine::of(cx, 2, 4, -2)?.values(&cx.tensor(0)?)?;
            let other = Affine::of(cx, 3, 5, -1)?.values(&cx.tensor(1)?)?;
            return cx.of(with_bias(cx, ops::matmul(&x, &other)?, 6)?, DType::F32);
        }
        let (a, b) = (
            beside_zero(cx, 0, 4, DType::F64)?,
            beside_zero(cx, 1, 5, DType::F64)?,
        );
        let product = as_type(&ops::matmul(&a, &b)?, DType::F32)?;
        let y = (product * (cx.tensor(2)? * cx.tensor(3)?)?)?;
        cx.of(with_bias(cx, y, 6)?, DType::F32)
    })
    .domain(DOMAIN)
    .any_type()
    .makes(|of| of.products())
    .integers(&[1]),
    op("DynamicQuantizeMatMul", |cx| {
        if cx.reader.is_reference {
            let x = requantized(&cx.tensor(0)?)?;
            let other = Affine::of(cx, 2, 3, -1)?.values(&cx.tensor(1)?)?;
            return cx.of(with_bias(cx, ops::matmul(&x, &other)?, 4)?, DType::F32);
        }
        let rank = cx.rank(1)?;
        let rows = cx
            .shape(1)?
            .get(rank.saturating_sub(2))
            .and_then(|size| size.as_number());
        let rows = rows.ok_or_else(|| Error::msg("a weight whose rows are not counted"))?;
        let zero = cx.optional(3)?;
        let scaled = Scaled::new(&cx.tensor(1)?, &cx.tensor(2)?, zero.as_ref(), rows)?;
        let y = scaled.of(&cx.tensor(0)?)?;
        cx.of(with_bias(cx, y, 4)?, DType::F32)
    })
    .domain(DOMAIN)
    .any_type()
    .makes(|of| of.products())
    .integers(&[1]),
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

/// Numbers as bytes stand for them, by a scale and a zero point that are made for them.
fn requantized(x: &Tensor) -> Result<Tensor> {
    let (levels, scale, zero) = Bytes::levels(x)?;
    ops::dequantize_affine(&levels, &scale, &zero, None)
}

/// A quantized input, whose scale and zero point stand behind it.
fn apart(cx: &NodeCx<'_>, at: usize) -> Result<Tensor> {
    match cx.reader.is_reference {
        true => Affine::of(cx, at + 1, at + 2, -1)?.values(&cx.tensor(at)?),
        false => beside_zero(cx, at, at + 2, DType::F32)? * cx.tensor(at + 1)?,
    }
}

/// `QGemm` in reference form.
fn reference_gemm(cx: &NodeCx<'_>) -> Given {
    let of_rows = cx.flag("transB");
    let (of_a, of_b) = (
        Affine::of(cx, 1, 2, -1)?,
        Affine::of(cx, 4, 5, if of_rows { 0 } else { 1 })?,
    );
    let (mut a, b) = (of_a.values(&cx.tensor(0)?)?, of_b.values(&cx.tensor(3)?)?);
    if cx.flag("transA") {
        a = ops::t(&a)?;
    }
    let bias = match cx.optional(6)? {
        Some(bias) => Some(Affine::of_products(&of_a, &of_b)?.values(&bias)?),
        None => None,
    };
    let y = match (of_rows, &bias) {
        (true, bias) => ops::linear(&a, &b, bias.as_ref())?,
        (false, None) => ops::matmul(&a, &b)?,
        (false, Some(bias)) => (ops::matmul(&a, &b)? + bias)?,
    };
    packed(cx, &y, 7, cx.dtype(0)?)
}

/// A quantized input as numbers of a type beside its zero point, if it has one.
fn beside_zero(cx: &NodeCx<'_>, at: usize, zero: usize, dtype: DType) -> Result<Tensor> {
    let x = as_type(&cx.tensor(at)?, dtype)?;
    match cx.optional(zero)? {
        Some(zero) => x - as_type(&zero, dtype)?,
        None => Ok(x),
    }
}

/// A result with the bias at a place, if there is one.
fn with_bias(cx: &NodeCx<'_>, y: Tensor, at: usize) -> Result<Tensor> {
    match cx.optional(at)? {
        Some(bias) => y + bias,
        None => Ok(y),
    }
}

/// Numbers as those of few bits, by the scale and the zero point at a place.
fn packed(cx: &NodeCx<'_>, y: &Tensor, at: usize, dtype: DType) -> Given {
    if cx.reader.is_reference {
        return Ok(vec![Affine::of(cx, at, at + 1, -1)?.levels(y, dtype)?]);
    }
    let y = ops::round(&(y / cx.tensor(at)?)?, 0)?;
    behind(cx, y, at + 1, dtype)
}

/// Whole numbers with the zero point at a place, if there is one, as those of a type.
fn behind(cx: &NodeCx<'_>, y: Tensor, at: usize, dtype: DType) -> Given {
    let y = match cx.optional(at)? {
        Some(zero) => (y + as_type(&zero, DType::F32)?)?,
        None => y,
    };
    Ok(vec![held(&y, dtype)?])
}

/// The sum of two quantized inputs, with each product and sum rounded as ONNX Runtime does, which adds to a product before it
/// rounds: else numbers between two steps would go the other way.
fn sum(cx: &mut NodeCx<'_>) -> Given {
    if cx.reader.is_reference {
        let dtype = cx.dtype(0)?;
        return packed(cx, &(apart(cx, 0)? + apart(cx, 3)?)?, 6, dtype);
    }
    let of = |at: usize| as_type(&cx.tensor(at)?, DType::F32);
    let zero = |at: usize| match cx.has(at) {
        true => of(at),
        false => Tensor::full((), 0.0, DType::F32),
    };
    let rounded = |a: &Tensor, by: &Tensor, more: &Tensor| -> Result<Tensor> {
        let product = (as_type(a, DType::F64)? * as_type(by, DType::F64)?)?;
        as_type(&(product + as_type(more, DType::F64)?)?, DType::F32)
    };
    let (a, b) = ((of(1)? / of(6)?)?, (of(4)? / of(6)?)?);
    let fixed = (zero(7)? - rounded(&zero(2)?, &a, &(zero(5)? * &b)?)?)?;
    let y = rounded(&of(0)?, &a, &rounded(&of(3)?, &b, &fixed)?)?;
    Ok(vec![held(&ops::round(&y, 0)?, cx.dtype(0)?)?])
}

fn alone(cx: &NodeCx<'_>, compute: impl Fn(&Tensor) -> Result<Tensor>) -> Given {
    packed(cx, &compute(&apart(cx, 0)?)?, 3, cx.dtype(0)?)
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
