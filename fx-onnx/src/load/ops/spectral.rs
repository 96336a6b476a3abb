//! Fourier transforms, as products with the roots of one: of any length, which a run may decide; and the bands of pitch
//! into which spectra are put together.
//!
//! Invariant: an angle is reduced to one turn in whole numbers before it is computed, so that long signals lose nothing.

use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::{Bound, Error, Result};

use crate::load::checks::rank;
use crate::load::node::NodeCx;
use crate::load::operator::{Operator, op};
use crate::load::value::{Given, as_type};
use crate::load::whole::Whole;

pub(super) const TABLE: &[Operator] = &[
    op("DFT", transform).check(|cx| rank(cx, 0, 2..)),
    op("STFT", of_frames).check(|cx| rank(cx, 0, 3..4)),
    op("MelWeightMatrix", mel_weights).makes(|_| 0),
];

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
    let (inverse, half) = (cx.flag("inverse"), cx.flag("onesided"));
    let given = cx.sizes(0)?[axis as usize].clone();
    let length = match (cx.has(1), inverse && half) {
        (true, _) => cx.whole(1)?,
        (false, false) => given.clone(),
        (false, true) => given.minus(1)?.times(2)?,
    };
    let bins = length.over(2)?.plus(1)?;
    let (taken, made) = match (inverse, half) {
        (true, true) => (bins.clone(), length.clone()),
        (false, true) => (length.clone(), bins.clone()),
        (_, false) => (length.clone(), length.clone()),
    };
    fits(cx, &taken, &made)?;
    let (x, parts) = numbers(cx)?;
    let x = fitted(&ops::movedim(&x, axis, -2)?, &given, &taken)?;
    let part = |at: i64| ops::select(&x, -1, at);
    let y = if inverse && half {
        let (cosines, sines) = roots(cx, &made, &taken, &length)?;
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
    } else if inverse {
        (turned(cx, &x, parts, &made, &length, 1.0)? / as_type(&length.tensor()?, DType::F64)?)?
    } else {
        forward(cx, &x, parts, &made, &length)?
    };
    let dtype = cx.dtype(0)?;
    cx.of(as_type(&ops::movedim(&y, -2, axis)?, dtype)?, dtype)
}

/// The signal in double precision, and how many parts its numbers have along the last dim.
fn numbers(cx: &NodeCx<'_>) -> Result<(Tensor, i64)> {
    let x = as_type(&cx.tensor(0)?, DType::F64)?;
    match cx.shape(0)?.last().and_then(|size| size.as_number()) {
        Some(parts @ 1..=2) => Ok((x, parts)),
        Some(other) => Err(Error::msg(format_args!("numbers of {other} parts"))),
        None => {
            // Parts that are not there are 0.
            let more = vec![Int::from(0i64), (2 - x.size(-1)?)?];
            Ok((ops::pad(&x, more, "constant", Bound::from(0.0))?, 2))
        }
    }
}

/// Numbers along the last dim times a table.
fn by(x: &Tensor, table: &Tensor) -> Result<Tensor> {
    let y = ops::matmul(&ops::unsqueeze(x, -2)?, &ops::t(table)?)?;
    ops::squeeze(&y, -2)
}

/// So many bins of signals of a length, which lie along the last dim but one.
fn forward(
    cx: &NodeCx<'_>,
    x: &Tensor,
    parts: i64,
    made: &Whole,
    length: &Whole,
) -> Result<Tensor> {
    turned(cx, x, parts, made, length, -1.0)
}

/// As [`forward`], with angles of a sign: below 0 the transform, above 0 its inverse but for the length.
fn turned(
    cx: &NodeCx<'_>,
    x: &Tensor,
    parts: i64,
    made: &Whole,
    length: &Whole,
    sign: f64,
) -> Result<Tensor> {
    let part = |at: i64| ops::select(x, -1, at);
    let (cosines, sines) = roots(cx, made, length, length)?;
    let sines = if sign < 0.0 { sines } else { (-sines)? };
    let re = part(0)?;
    let (mut real, mut imaginary) = (by(&re, &cosines)?, (-by(&re, &sines)?)?);
    if parts == 2 {
        let im = part(1)?;
        real = (real + by(&im, &sines)?)?;
        imaginary = (imaginary + by(&im, &cosines)?)?;
    }
    ops::stack(&[real, imaginary], -1)
}

/// Refuses a table of known sizes that is too large.
fn fits(cx: &NodeCx<'_>, rows: &Whole, columns: &Whole) -> Result<()> {
    let limit = cx.reader.limits.constant_bytes as i64 / 8;
    let table = rows.known().zip(columns.known());
    match table.is_some_and(|(rows, columns)| rows.saturating_mul(columns) > limit) {
        true => Err(Error::msg(
            "a transform whose table is larger than `Limits::constant_bytes`",
        )),
        false => Ok(()),
    }
}

/// Transforms of the frames of a signal, each times a window.
fn of_frames(cx: &mut NodeCx<'_>) -> Given {
    let sizes = cx.sizes(0)?;
    let length = match (cx.has(3), cx.has(2)) {
        (true, _) => cx.whole(3)?,
        (_, true) => match &*cx.sizes(2)? {
            [length] => length.clone(),
            other => return Err(Error::msg(format_args!("a window of {} dims", other.len()))),
        },
        _ => sizes[1].clone(),
    };
    let step = cx.whole(1)?;
    if step.known().is_some_and(|step| step < 1) || length.known().is_some_and(|length| length < 1)
    {
        return Err(Error::msg(
            "frames without length, or without steps between them",
        ));
    }
    let frames = sizes[1]
        .minus(length.clone())?
        .over(step.clone())?
        .plus(1)?;
    if frames.known().is_some_and(|frames| frames < 1) {
        return Err(Error::msg("a signal that is shorter than a frame"));
    }
    let bins = match cx.int("onesided", 1) {
        0 => length.clone(),
        _ => length.over(2)?.plus(1)?,
    };
    fits(cx, &frames, &length)?;
    fits(cx, &bins, &length)?;
    let (frames, each) = (frames.int()?, length.int()?);
    let starts = ops::unsqueeze(&cx.numbers(frames)?, 1)?;
    let starts = match step.known() {
        Some(step) => (starts * step)?,
        None => (starts * step.tensor()?)?,
    };
    let places = ops::reshape(&(starts + cx.numbers(each)?)?, [-1])?;
    let (x, parts) = numbers(cx)?;
    let x = ops::index_select(&x, 1, &places)?;
    let mut x = ops::reshape(&x, vec![sizes[0].int()?, frames, each, parts.into()])?;
    if let Some(window) = cx.optional(2)? {
        x = (x * ops::reshape(&as_type(&window, DType::F64)?, [-1, 1])?)?;
    }
    let dtype = cx.dtype(0)?;
    cx.of(
        as_type(&forward(cx, &x, parts, &bins, &length)?, dtype)?,
        dtype,
    )
}

/// How much each bin of a spectrum counts for each band of heard pitch: triangles, of which each band begins where the
/// one before has its peak.
fn mel_weights(cx: &mut NodeCx<'_>) -> Given {
    let whole = |at: usize| -> Result<i64> {
        let known = cx.input(at).known_ints()?.first().copied();
        known.ok_or_else(|| Error::msg("a number is expected, and there is none"))
    };
    let (bands, length, rate) = (whole(0)?, whole(1)?, whole(2)?);
    let hertz = |at: usize| -> Result<f32> {
        let x = cx.tensor(at)?;
        match x.proxy() {
            None => Ok(x.item()? as f32),
            Some(_) => Err(Error::msg(
                "an edge that only a run knows: give the input a constant value with `Load::constant`",
            )),
        }
    };
    let (low, high) = (hertz(3)?, hertz(4)?);
    let bins = length / 2 + 1;
    let limit = cx.reader.limits.constant_bytes as i64 / 8;
    if bands < 1 || length < 1 || rate < 1 || bands.saturating_mul(bins) > limit {
        return Err(Error::msg(format_args!(
            "{bands} bands of a transform of length {length} at a rate of {rate}"
        )));
    }
    // In single precision, in which ONNX Runtime finds the bins.
    let mel = |hertz: f32| 2595.0 * (1.0 + hertz / 700.0).log10();
    let step = (mel(high) - mel(low)) / (bands + 2) as f32;
    let edge = |at: i64| -> Result<usize> {
        let pitch = (at as f32 * step + mel(low)) / 2595.0;
        let hertz = (700.0 * (10f64.powf(f64::from(pitch)) - 1.0)) as f32;
        let bin = ((length + 1) as f32 * hertz / rate as f32).floor();
        match (0.0..bins as f32).contains(&bin) {
            true => Ok(bin as usize),
            false => Err(Error::msg(format_args!(
                "a band at bin {bin} of {bins}: its frequency is not in the spectrum"
            ))),
        }
    };
    let columns = bands as usize;
    let mut weights = vec![0f32; columns * bins as usize];
    for band in 0..columns {
        let at = band as i64;
        let (start, peak, end) = (edge(at)?, edge(at + 1)?, edge(at + 2)?);
        let mut weigh = |bin: usize, weight: f32| weights[bin * columns + band] = weight;
        if start == peak {
            weigh(peak, 1.0);
        } else {
            let rise = peak as f32 - start as f32;
            (start..=peak).for_each(|bin| weigh(bin, (bin - start) as f32 / rise));
        }
        let fall = end as f32 - peak as f32;
        (peak..end).for_each(|bin| weigh(bin, (end - bin) as f32 / fall));
    }
    let dtype = cx.type_of("output_datatype")?.unwrap_or(DType::F32);
    let weights = Tensor::from_vec(weights, (bins as usize, columns))?;
    cx.of(as_type(&weights, dtype)?, dtype)
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
