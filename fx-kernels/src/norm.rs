//! Functions of rows: softmax, layer norm, RMS norm, group norm. Each row is read from the cache
//! after the first pass, and sums run in several lanes so that they stay exact to about 1e-7.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::math::{exp_negative, map};
use crate::scratch::lend;
use crate::vector::{inlined, load_some, store_some};

/// The floats of a task: about 20 us.
const TASK: usize = 32 << 10;

/// Sums a function of each vector of a row in 8 vectors, block by block.
#[inline(always)]
pub(crate) fn sum<S: Simd>(simd: S, row: &[f32], f: impl Fn(S::f32s) -> S::f32s) -> f32 {
    let zero = simd.splat_f32s(0.0);
    let mut total = 0.0;
    for block in row.chunks(1024) {
        let (vectors, rest) = S::as_simd_f32s(block);
        let (fours, ones) = vectors.as_chunks::<4>();
        let mut sums = [zero; 4];
        for four in fours {
            sums[0] = simd.add_f32s(sums[0], f(four[0]));
            sums[1] = simd.add_f32s(sums[1], f(four[1]));
            sums[2] = simd.add_f32s(sums[2], f(four[2]));
            sums[3] = simd.add_f32s(sums[3], f(four[3]));
        }
        for one in ones {
            sums[0] = simd.add_f32s(sums[0], f(*one));
        }
        let pair = [
            simd.add_f32s(sums[0], sums[1]),
            simd.add_f32s(sums[2], sums[3]),
        ];
        let mut part = simd.reduce_sum_f32s(simd.add_f32s(pair[0], pair[1]));
        if !rest.is_empty() {
            // Lanes behind the end must not count, whatever `f` makes of zero.
            let mut last = [0.0f32; 64];
            store_some(simd, &mut last, f(load_some(simd, rest)));
            part += last[..rest.len()].iter().sum::<f32>();
        }
        total += part;
    }
    total
}

/// The largest float of a row; whether NaN counts is open. Minus infinity for an empty row.
#[inline(always)]
pub(crate) fn largest<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(row);
    let (fours, ones) = vectors.as_chunks::<4>();
    let mut most = [simd.splat_f32s(f32::NEG_INFINITY); 4];
    for four in fours {
        most[0] = simd.max_f32s(most[0], four[0]);
        most[1] = simd.max_f32s(most[1], four[1]);
        most[2] = simd.max_f32s(most[2], four[2]);
        most[3] = simd.max_f32s(most[3], four[3]);
    }
    for one in ones {
        most[0] = simd.max_f32s(most[0], *one);
    }
    let pair = [
        simd.max_f32s(most[0], most[1]),
        simd.max_f32s(most[2], most[3]),
    ];
    let most = simd.reduce_max_f32s(simd.max_f32s(pair[0], pair[1]));
    rest.iter().fold(most, |m, x| m.max(*x))
}

/// Writes a function of the vectors of a row.
#[inline(always)]
fn write<S: Simd>(simd: S, row: &[f32], out: &mut [f32], f: impl Fn(S::f32s) -> S::f32s) {
    let (vectors, rest) = S::as_simd_f32s(row);
    let (outs, out_rest) = S::as_mut_simd_f32s(&mut out[..row.len()]);
    for (out, v) in outs.iter_mut().zip(vectors) {
        *out = f(*v);
    }
    if !rest.is_empty() {
        store_some(simd, out_rest, f(load_some(simd, rest)));
    }
}

/// `out = (row - mean) * factor * weight + bias`, weight and bias where there are any.
#[inline(always)]
fn scale<S: Simd>(
    simd: S,
    row: &[f32],
    [mean, factor]: [f32; 2],
    [weight, bias]: [Option<&[f32]>; 2],
    out: &mut [f32],
) {
    let (mean, factor) = (simd.splat_f32s(mean), simd.splat_f32s(factor));
    let lanes = S::F32_LANES;
    for (i, (row, out)) in row.chunks(lanes).zip(out.chunks_mut(lanes)).enumerate() {
        let mut y = simd.mul_f32s(simd.sub_f32s(load_some(simd, row), mean), factor);
        let at = i * lanes..i * lanes + row.len();
        if let Some(weight) = weight {
            y = simd.mul_f32s(y, load_some(simd, &weight[at.clone()]));
        }
        if let Some(bias) = bias {
            y = simd.add_f32s(y, load_some(simd, &bias[at]));
        }
        store_some(simd, out, y);
    }
}

/// What is done to each row.
#[derive(Clone, Copy)]
enum Kind<'a> {
    Softmax,
    LogSoftmax,
    Layer {
        weight: Option<&'a [f32]>,
        bias: Option<&'a [f32]>,
        eps: f32,
    },
    Rms {
        weight: Option<&'a [f32]>,
        eps: f32,
    },
    /// A row is the channels of a group, `area` floats each; the channels count on over rows.
    Group {
        weight: Option<&'a [f32]>,
        bias: Option<&'a [f32]>,
        eps: f32,
        area: usize,
    },
}

/// Some rows.
struct Rows<'a> {
    kind: Kind<'a>,
    size: usize,
    /// The number of the first row.
    first: usize,
    x: &'a [f32],
    out: &'a mut [f32],
}

/// The mean of a row and one over its deviation.
#[inline(always)]
fn moments<S: Simd>(simd: S, row: &[f32], eps: f32) -> [f32; 2] {
    let n = row.len() as f32;
    let mean = inlined!(sum(simd, row; |x| x)) / n;
    let center = simd.splat_f32s(mean);
    let squares = inlined!(sum(simd, row; |x| {
        let d = simd.sub_f32s(x, center);
        simd.mul_f32s(d, d)
    }));
    let variance = squares / n;
    [mean, 1.0 / (variance + eps).sqrt()]
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows {
            kind,
            size,
            first,
            x,
            out,
        } = self;
        for (i, (row, out)) in x
            .chunks_exact(size)
            .zip(out.chunks_exact_mut(size))
            .enumerate()
        {
            match kind {
                Kind::Softmax => {
                    let most = simd.splat_f32s(largest(simd, row));
                    inlined!(write(simd, row, out; |x| {
                        exp_negative(simd, simd.sub_f32s(x, most))
                    }));
                    let factor = simd.splat_f32s(1.0 / inlined!(sum(simd, out; |x| x)));
                    inlined!(map(simd, out; |x| simd.mul_f32s(x, factor)));
                }
                Kind::LogSoftmax => {
                    let most = largest(simd, row);
                    let shift = simd.splat_f32s(most);
                    let total = inlined!(sum(simd, row; |x| {
                        exp_negative(simd, simd.sub_f32s(x, shift))
                    }));
                    let log = simd.splat_f32s(total.ln());
                    inlined!(write(simd, row, out; |x| {
                        simd.sub_f32s(simd.sub_f32s(x, shift), log)
                    }));
                }
                Kind::Layer { weight, bias, eps } => {
                    scale(simd, row, moments(simd, row, eps), [weight, bias], out);
                }
                Kind::Rms { weight, eps } => {
                    let squares = inlined!(sum(simd, row; |x| simd.mul_f32s(x, x)));
                    let factor = 1.0 / (squares / size as f32 + eps).sqrt();
                    scale(simd, row, [0.0, factor], [weight, None], out);
                }
                Kind::Group {
                    weight,
                    bias,
                    eps,
                    area,
                } => {
                    let [mean, factor] = moments(simd, row, eps);
                    let channels = size / area;
                    let parts = row.chunks_exact(area).zip(out.chunks_exact_mut(area));
                    for (c, (row, out)) in parts.enumerate() {
                        let of = |floats: Option<&[f32]>, other: f32| {
                            floats.map_or(other, |floats| {
                                floats[((first + i) * channels + c) % floats.len()]
                            })
                        };
                        let factor = factor * of(weight, 1.0);
                        let shift = simd.splat_f32s(of(bias, 0.0));
                        let (mean, factor) = (simd.splat_f32s(mean), simd.splat_f32s(factor));
                        inlined!(write(simd, row, out; |x| {
                            simd.mul_add_e_f32s(simd.sub_f32s(x, mean), factor, shift)
                        }));
                    }
                }
            }
        }
    }
}

/// Each row of its own copy, which is in the cache.
fn rows_in_place(
    level: Level,
    kind: Kind<'_>,
    size: usize,
    x: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, x)?;
    if x.is_empty() {
        return Ok(());
    }
    let part = |part: &mut [f32]| {
        lend(size, |copy| {
            for out in part.chunks_exact_mut(size) {
                copy.copy_from_slice(out);
                level.run(Rows {
                    kind,
                    size,
                    first: 0,
                    x: copy,
                    out,
                });
            }
        });
    };
    let chunk = TASK.div_ceil(size) * size;
    match x.len() <= 2 * chunk {
        true => part(x),
        false => x.par_chunks_mut(chunk).for_each(part),
    }
    Ok(())
}

fn rows(level: Level, kind: Kind<'_>, size: usize, x: &[f32], out: &mut [f32]) {
    if x.is_empty() || size == 0 {
        return;
    }
    let together = TASK.div_ceil(size);
    let chunk = together * size;
    if x.len() <= 2 * chunk {
        return level.run(Rows {
            kind,
            size,
            first: 0,
            x,
            out,
        });
    }
    x.par_chunks(chunk)
        .zip(out.par_chunks_mut(chunk))
        .enumerate()
        .for_each(|(i, (x, out))| {
            level.run(Rows {
                kind,
                size,
                first: i * together,
                x,
                out,
            });
        });
}

fn check_rows(size: usize, x: &[f32], out: &[f32]) -> Result<(), SizeError> {
    check(
        "the input",
        x.len().checked_div(size).unwrap_or(0) * size,
        x.len(),
    )?;
    check("the result", x.len(), out.len())
}

fn check_row(what: &'static str, size: usize, row: Option<&[f32]>) -> Result<(), SizeError> {
    row.map_or(Ok(()), |row| check(what, size, row.len()))
}

/// `exp(x) / sum(exp(x))` of each row of `size` floats. A row of minus infinities is NaN.
///
/// # Errors
///
/// Where `x` is not a number of whole rows or `out` has another length.
///
/// ```
/// use fx_kernels::{Level, norm::softmax};
///
/// let mut out = [0.0; 4];
/// softmax(Level::best(), 2, &[0.0, 0.0, 1.0, f32::NEG_INFINITY], &mut out)?;
/// assert_eq!(out, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn softmax(level: Level, size: usize, x: &[f32], out: &mut [f32]) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    rows(level, Kind::Softmax, size, x, out);
    Ok(())
}

/// The logarithm of [`softmax`].
///
/// # Errors
///
/// Those of [`softmax`].
pub fn log_softmax(level: Level, size: usize, x: &[f32], out: &mut [f32]) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    rows(level, Kind::LogSoftmax, size, x, out);
    Ok(())
}

/// [`softmax`] of each row of `size` floats of `x`, in its place.
///
/// # Errors
///
/// Where `x` is not a number of whole rows.
///
/// ```
/// use fx_kernels::{Level, norm::softmax_in_place};
///
/// let mut x = [0.0, 0.0, 1.0, f32::NEG_INFINITY];
/// softmax_in_place(Level::best(), 2, &mut x)?;
/// assert_eq!(x, [0.5, 0.5, 1.0, 0.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn softmax_in_place(level: Level, size: usize, x: &mut [f32]) -> Result<(), SizeError> {
    rows_in_place(level, Kind::Softmax, size, x)
}

/// [`log_softmax`] of each row of `size` floats of `x`, in its place.
///
/// # Errors
///
/// Those of [`softmax_in_place`].
pub fn log_softmax_in_place(level: Level, size: usize, x: &mut [f32]) -> Result<(), SizeError> {
    rows_in_place(level, Kind::LogSoftmax, size, x)
}

/// `(x - mean) / sqrt(variance + eps) * weight + bias` of each row of `size` floats; the variance is
/// the mean of squares (not Bessel's), weight and bias have `size` floats.
///
/// # Errors
///
/// Where `x` is not a number of whole rows or another slice has another length.
///
/// ```
/// use fx_kernels::{Level, norm::layer_norm};
///
/// let mut out = [0.0; 2];
/// layer_norm(Level::best(), 2, &[1.0, 3.0], None, Some(&[0.0, 1.0]), 0.0, &mut out)?;
/// assert_eq!(out, [-1.0, 2.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn layer_norm(
    level: Level,
    size: usize,
    x: &[f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    check_row("the weight", size, weight)?;
    check_row("the bias", size, bias)?;
    rows(level, Kind::Layer { weight, bias, eps }, size, x, out);
    Ok(())
}

/// `x / sqrt(mean(x^2) + eps) * weight` of each row of `size` floats.
///
/// # Errors
///
/// Those of [`layer_norm`].
pub fn rms_norm(
    level: Level,
    size: usize,
    x: &[f32],
    weight: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    check_rows(size, x, out)?;
    check_row("the weight", size, weight)?;
    rows(level, Kind::Rms { weight, eps }, size, x, out);
    Ok(())
}

/// The sizes of [`group_norm`]'s input, `[batch, channels, area]`, and the number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// The channels.
    pub channels: usize,
    /// The floats of a channel: height times width.
    pub area: usize,
    /// The groups that the channels are cut into.
    pub groups: usize,
}

/// Normalises each group of channels of each image of `[batch, channels, area]` by its mean and
/// variance; then weight and bias, a float for each channel.
///
/// # Errors
///
/// Where a slice has another length than the sizes ask for, or the groups do not divide the channels.
pub fn group_norm(
    level: Level,
    sizes: Groups,
    x: &[f32],
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<(), SizeError> {
    let Groups {
        channels,
        area,
        groups,
    } = sizes;
    let each = channels.checked_div(groups).unwrap_or(0);
    check("the list of channels", each * groups, channels)?;
    check_rows(channels * area, x, out)?;
    check_row("the weight", channels, weight)?;
    check_row("the bias", channels, bias)?;
    rows(
        level,
        Kind::Group {
            weight,
            bias,
            eps,
            area,
        },
        each * area,
        x,
        out,
    );
    Ok(())
}
