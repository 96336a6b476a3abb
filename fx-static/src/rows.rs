//! Functions of rows: softmax, layer norm, RMS norm, group norm. Sums run in several lanes, so that they stay exact to
//! about 1e-7.

use pulp::{Scalar, Simd, WithSimd};

use crate::math::{exp_negative, ln, map};
use crate::vector::{inlined, load_some, store_some};

/// Sums a function of each vector of a row in 8 vectors, block by block.
#[inline(always)]
pub fn sum<S: Simd>(simd: S, row: &[f32], f: impl Fn(S::f32s) -> S::f32s) -> f32 {
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
pub fn largest<S: Simd>(simd: S, row: &[f32]) -> f32 {
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
#[derive(Debug, Clone, Copy)]
pub enum Kind<'a> {
    /// `exp(x) / sum(exp(x))`.
    Softmax,
    /// The logarithm of it.
    LogSoftmax,
    /// `(x - mean) / sqrt(variance + eps)`, times the weight, plus the bias.
    Layer {
        /// As many floats as a row.
        weight: Option<&'a [f32]>,
        /// As many floats as a row.
        bias: Option<&'a [f32]>,
        /// Added to the variance.
        eps: f32,
    },
    /// `x / sqrt(mean(x^2) + eps)`, times the weight.
    Rms {
        /// As many floats as a row.
        weight: Option<&'a [f32]>,
        /// Added to the mean of squares.
        eps: f32,
    },
    /// A row is the channels of a group, `area` floats each; the channels count on over rows.
    Group {
        /// A float for each channel.
        weight: Option<&'a [f32]>,
        /// A float for each channel.
        bias: Option<&'a [f32]>,
        /// Added to the variance.
        eps: f32,
        /// The floats of a channel.
        area: usize,
    },
}

/// Some rows, as a kernel that is compiled for a level.
#[derive(Debug)]
pub struct Rows<'a> {
    /// What is done to each.
    pub kind: Kind<'a>,
    /// The floats of a row.
    pub size: usize,
    /// The number of the first row.
    pub first: usize,
    /// The rows.
    pub x: &'a [f32],
    /// As many floats.
    pub out: &'a mut [f32],
}

#[inline]
fn sqrt(x: f32) -> f32 {
    Scalar::new().sqrt_f32s(x)
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
    [mean, 1.0 / sqrt(variance + eps)]
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
                    let log = ln(simd, simd.splat_f32s(total));
                    inlined!(write(simd, row, out; |x| {
                        simd.sub_f32s(simd.sub_f32s(x, shift), log)
                    }));
                }
                Kind::Layer { weight, bias, eps } => {
                    scale(simd, row, moments(simd, row, eps), [weight, bias], out);
                }
                Kind::Rms { weight, eps } => {
                    let squares = inlined!(sum(simd, row; |x| simd.mul_f32s(x, x)));
                    let factor = 1.0 / sqrt(squares / size as f32 + eps);
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
