//! Random numbers, from a key that the program takes.
//!
//! Invariant: each draw takes the state that the one before it left.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::rules;
use crate::out::cx::{Array, Cx};

rules! {
    rand => drawn, rand_like => drawn,
    randn => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["x", "shape"]);
        Ok(normal(cx, dtype, &shape)?.into())
    },
    randn_like => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["x", "shape"]);
        Ok(normal(cx, dtype, &shape)?.into())
    },
    normal => |cx, call| {
        let (dtype, shape) = cx.result(call)?;
        call.needs_no(&["size"]);
        let x = normal(cx, dtype, &shape)?;
        let x = cx.with_number("multiply", &x, call.float("std")?);
        Ok(cx.with_number("add", &x, call.float("mean")?).into())
    },
    randint => whole, randint_like => whole,
    bernoulli => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let chance = uniform(cx, x.dtype, &x.shape)?;
        let is_one = cx.compare("LT", &chance, &x);
        Ok(cx.convert(&is_one, x.dtype).into())
    },
    dropout => |cx, call| dropped(cx, call, |shape| shape.to_vec()),
    dropout1d => |cx, call| dropped(cx, call, |shape| channels(shape, 1)),
    dropout2d => |cx, call| dropped(cx, call, |shape| channels(shape, 2)),
    dropout3d => |cx, call| dropped(cx, call, |shape| channels(shape, 3)),
    stochastic_depth => |cx, call| {
        let per_row = match &*call.text("mode")? {
            "row" => true,
            "batch" => false,
            other => return Err(Error::msg(format_args!("`mode` is \"row\" or \"batch\", not {other:?}"))),
        };
        let size = move |(dim, size): (usize, &i64)| if per_row && dim == 0 { *size } else { 1 };
        dropped(cx, call, |shape| shape.iter().enumerate().map(size).collect())
    },
    rrelu => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let (lower, upper) = (call.float("lower")?, call.float("upper")?);
        let slope = match call.flag("training")? {
            true => {
                let chance = uniform(cx, x.dtype, &x.shape)?;
                let slope = cx.with_number("multiply", &chance, upper - lower);
                cx.with_number("add", &slope, lower)
            }
            false => cx.splat((lower + upper) / 2.0, x.dtype, &x.shape),
        };
        let below = cx.binary("multiply", &x, &slope);
        let is_above = cx.compare_number("GE", &x, 0.0);
        Ok(cx.select(&is_above, &x, &below).into())
    },
    alpha_dropout => alpha, feature_alpha_dropout => alpha,
}

/// Numbers of 24 random bits from zero to below one.
fn uniform(cx: &mut Cx, dtype: DType, shape: &[i64]) -> Result<Array> {
    let bits = cx.random_bits(shape)?;
    let eight = cx.splat(8.0, DType::U32, shape);
    let high = cx.binary("shift_right_logical", &bits, &eight);
    let float = cx.convert(&high, DType::F32);
    let chance = cx.with_number("multiply", &float, 1.0 / f64::from(1u32 << 24));
    Ok(cx.convert(&chance, dtype))
}

/// Numbers of the normal distribution, by the inverse of its error function.
fn normal(cx: &mut Cx, dtype: DType, shape: &[i64]) -> Result<Array> {
    let chance = uniform(cx, DType::F32, shape)?;
    // From above -1 to below 1.
    let wide = cx.with_number("multiply", &chance, 2.0);
    let wide = cx.with_number("add", &wide, -1.0 + 1.0 / f64::from(1u32 << 24));
    let x = cx.unary("chlo.erf_inv", &wide);
    let x = cx.with_number("multiply", &x, std::f64::consts::SQRT_2);
    Ok(cx.convert(&x, dtype))
}

fn drawn(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    call.needs_no(&["x", "shape"]);
    let (dtype, shape) = cx.result(call)?;
    Ok(uniform(cx, dtype, &shape)?.into())
}

fn whole(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    call.needs_no(&["x", "size"]);
    let (dtype, shape) = cx.result(call)?;
    let (low, high) = (call.float("low")?, call.float("high")?);
    let chance = uniform(cx, DType::F32, &shape)?;
    let scaled = cx.with_number("multiply", &chance, high - low);
    let floor = cx.unary("floor", &scaled);
    let at = cx.convert(&floor, dtype);
    Ok(cx.with_number("add", &at, low).into())
}

/// One for each sample and channel of images of so many dims.
fn channels(shape: &[i64], dims: usize) -> Vec<i64> {
    let front = shape.len().saturating_sub(dims);
    let sizes = shape.iter().enumerate();
    sizes
        .map(|(dim, size)| if dim < front { *size } else { 1 })
        .collect()
}

/// Elements kept by chance, and scaled so that their mean stays.
fn dropped(cx: &mut Cx, call: &OpCall<'_>, mask: impl Fn(&[i64]) -> Vec<i64>) -> Result<Val> {
    let x = cx.tensor(call, "x")?;
    let p = call.float("p")?;
    if !call.flag("training")? || p == 0.0 {
        return Ok(x.into());
    }
    if p >= 1.0 {
        return Ok(cx.with_number("multiply", &x, 0.0).into());
    }
    let chance = uniform(cx, DType::F32, &mask(&x.shape))?;
    let kept = cx.compare_number("GE", &chance, p);
    let kept = cx.expand(&kept, &x.shape)?;
    let scaled = cx.with_number("multiply", &x, 1.0 / (1.0 - p));
    let zero = cx.splat(0.0, x.dtype, &x.shape);
    Ok(cx.select(&kept, &scaled, &zero).into())
}

fn alpha(_: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let p = call.float("p")?;
    match call.flag("training")? && p != 0.0 {
        false => call.val("x"),
        true => Err(Error::not_in_format(
            "alpha dropout while training: write it by `bernoulli`",
        )),
    }
}
