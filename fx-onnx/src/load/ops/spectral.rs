//! Fourier transforms, as products with the roots of one: of any length, which a run may decide.
//!
//! Invariant: an angle is reduced to one turn in whole numbers before it is computed, so that long signals lose nothing.

use fx_nn::prelude::*;
use fx_nn::{Bound, Error, Result};

use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[op("DFT", transform).check(|cx| rank(cx, 0, 2..))];

/// A transform along an axis, of real or complex numbers, whose parts lie along the last dim.
fn transform(cx: &mut NodeCx<'_>) -> Given {
    let shape = cx.shape(0)?;
    let dims = shape.len();
    let axis = match (cx.version < 20, cx.has(2)) {
        (true, _) => cx.int("axis", 1),
        (false, true) => cx.input(2).known_ints()?.first().copied().unwrap_or(-2),
        (false, false) => -2,
    };
    let axis = cx.place(axis, dims)?;
    if axis as usize + 1 == dims {
        return Err(Error::msg(
            "a transform along the dim of the parts of numbers",
        ));
    }
    let parts = match shape.last().and_then(|size| size.as_number()) {
        Some(parts @ 1..=2) => Some(parts),
        Some(other) => {
            return Err(Error::msg(format_args!("numbers of {other} parts")));
        }
        None => None,
    };
    let (inverse, half) = (cx.flag("inverse"), cx.flag("onesided"));
    if inverse && !half {
        return Err(Error::msg("an inverse transform to complex numbers"));
    }
    let given = cx.sizes(0)?[axis as usize].clone();
    let length = match (cx.has(1), inverse) {
        (true, _) => cx.whole(1)?,
        (false, false) => given.clone(),
        (false, true) => given.minus(1)?.times(2)?,
    };
    let bins = length.over(2)?.plus(1)?;
    let (taken, made) = match (inverse, half) {
        (true, _) => (bins.clone(), length.clone()),
        (false, true) => (length.clone(), bins.clone()),
        (false, false) => (length.clone(), length.clone()),
    };
    let table = taken.known().zip(made.known());
    let limit = cx.reader.limits.constant_bytes as i64 / 8;
    if table.is_some_and(|(taken, made)| taken.saturating_mul(made) > limit) {
        return Err(Error::msg(
            "a transform whose table is larger than `Limits::constant_bytes`",
        ));
    }
    let mut x = as_type(&cx.tensor(0)?, DType::F64)?;
    let parts = match parts {
        Some(parts) => parts,
        None => {
            // Parts that are not there are 0.
            let more = vec![Int::from(0i64), (2 - x.size(-1)?)?];
            x = ops::pad(&x, more, "constant", Bound::from(0.0))?;
            2
        }
    };
    let x = fitted(&ops::movedim(&x, axis, -2)?, &given, &taken)?;
    let part = |at: i64| ops::select(&x, -1, at);
    let (cosines, sines) = roots(cx, &made, &taken, &length)?;
    let by = |x: &Tensor, table: &Tensor| ops::matmul(&ops::unsqueeze(x, -2)?, &ops::t(table)?);
    let by = |x: &Tensor, table: &Tensor| ops::squeeze(&by(x, table)?, -2);
    let y = if inverse {
        // Each bin but the first and the middle one stands for its mirror image too.
        let places = cx.numbers(taken.int()?)?;
        let (places, whole) = (
            as_type(&places, DType::F64)?,
            as_type(&length.tensor()?, DType::F64)?,
        );
        let single = ops::logical_or(&places.eq(0.0)?, &(&places * 2.0)?.eq(&whole)?)?;
        let weight = ops::r#where(&single, 1.0, &(ops::ones_like(&places, None)? * 2.0)?)?;
        let mut y = by(&(part(0)? * &weight)?, &cosines)?;
        if parts == 2 {
            y = (y - by(&(part(1)? * &weight)?, &sines)?)?;
        }
        ops::unsqueeze(&(y / whole)?, -1)?
    } else {
        let re = part(0)?;
        let (mut real, mut imaginary) = (by(&re, &cosines)?, (-by(&re, &sines)?)?);
        if parts == 2 {
            let im = part(1)?;
            real = (real + by(&im, &sines)?)?;
            imaginary = (imaginary + by(&im, &cosines)?)?;
        }
        ops::stack(&[real, imaginary], -1)?
    };
    let dtype = cx.dtype(0)?;
    cx.of(as_type(&ops::movedim(&y, -2, axis)?, dtype)?, dtype)
}

/// The signal cut or filled with zeros to a length, along the last dim but one.
fn fitted(x: &Tensor, given: &Whole, wanted: &Whole) -> Result<Tensor> {
    let is_same = match (given.known(), wanted.known()) {
        (Some(given), Some(wanted)) => given == wanted,
        _ => given.dim().is_some_and(|dim| wanted.dim() == Some(dim)),
    };
    if is_same {
        return Ok(x.clone());
    }
    let kept = given.at_most(wanted.clone())?;
    let x = ops::narrow(x, -2, 0, kept.int()?)?;
    let none = Int::from(0i64);
    let more = vec![none, none, none, wanted.minus(kept)?.int()?];
    ops::pad(&x, more, "constant", Bound::from(0.0))
}

/// The cosines and sines of the angles of each result and each number of the signal.
fn roots(cx: &NodeCx<'_>, made: &Whole, taken: &Whole, length: &Whole) -> Result<(Tensor, Tensor)> {
    let rows = ops::unsqueeze(&cx.numbers(made.int()?)?, 1)?;
    let turns = (rows * cx.numbers(taken.int()?)?)?;
    let length = length.tensor()?;
    let part = as_type(&ops::remainder(&turns, &length)?, DType::F64)?;
    let angles = ((part * (2.0 * std::f64::consts::PI))? / as_type(&length, DType::F64)?)?;
    Ok((ops::cos(&angles)?, ops::sin(&angles)?))
}
