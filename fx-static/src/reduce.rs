//! Sums and largest and smallest floats over one dimension of three.

use pulp::{Simd, WithSimd};

use crate::rows::sum;
use crate::source::source;
use crate::vector::{inlined, load_some, store_some};

/// The rows whose sum is made before it is added to the others, so that it stays exact.
const TOGETHER: usize = 64;

/// The most floats of a row that are reduced at once: sums of them stay in the cache.
pub const WIDE: usize = 512;

/// What is made of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum; 0 of none.
    Sum,
    /// The sum over their number; NaN of none.
    Mean,
    /// The largest; NaN if one is NaN, minus infinity of none.
    Max,
    /// The smallest; NaN if one is NaN, infinity of none.
    Min,
}

impl Reduction {
    #[inline]
    fn is_sum(self) -> bool {
        matches!(self, Reduction::Sum | Reduction::Mean)
    }

    /// What is made of no floats, but the mean.
    #[inline]
    pub fn start(self) -> f32 {
        match self {
            Reduction::Sum | Reduction::Mean => 0.0,
            Reduction::Max => f32::NEG_INFINITY,
            Reduction::Min => f32::INFINITY,
        }
    }

    #[inline(always)]
    fn join<S: Simd>(self, simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        let y = match self {
            Reduction::Sum | Reduction::Mean => return simd.add_f32s(a, b),
            Reduction::Max => simd.max_f32s(a, b),
            Reduction::Min => simd.min_f32s(a, b),
        };
        let sum = simd.add_f32s(a, b);
        // The sum of infinities of both signs is no number, and neither of them is NaN.
        let numbers = simd.select_f32s(simd.equal_f32s(a, a), b, a);
        simd.select_f32s(simd.equal_f32s(numbers, numbers), y, sum)
    }

    #[inline]
    fn join_one(self, a: f32, b: f32) -> f32 {
        match self {
            Reduction::Sum | Reduction::Mean => a + b,
            _ if a.is_nan() || b.is_nan() => f32::NAN,
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
        }
    }
}

/// Some results of one outer index, as a kernel that is compiled for a level.
#[derive(Debug)]
pub struct Job<'a> {
    /// What is made of floats.
    pub how: Reduction,
    /// From the first result's first float on.
    pub x: &'a [f32],
    /// The floats of a result.
    pub count: usize,
    /// The floats from a row to the next.
    pub inner: usize,
    /// The results: at most [`WIDE`] where `inner` is more than 1.
    pub out: &'a mut [f32],
}

impl WithSimd for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Job {
            how,
            x,
            count,
            inner,
            out,
        } = self;
        if inner == 1 {
            for (row, out) in x.chunks(count.max(1)).zip(out.iter_mut()) {
                *out = of_row(simd, how, row);
            }
        } else if count > 0 {
            let mut part = [0.0; WIDE];
            let part = &mut part[..out.len()];
            out.fill(how.start());
            for first in (0..count).step_by(TOGETHER) {
                part.fill(how.start());
                for row in first..count.min(first + TOGETHER) {
                    join_all(simd, how, part, &x[row * inner..][..part.len()]);
                }
                join_all(simd, how, out, part);
            }
        }
        if how == Reduction::Mean {
            for out in out.iter_mut() {
                *out /= count as f32;
            }
        }
    }
}

/// What is made of a row.
#[inline(always)]
fn of_row<S: Simd>(simd: S, how: Reduction, row: &[f32]) -> f32 {
    if how.is_sum() {
        return inlined!(sum(simd, row; |x| x));
    }
    let start = simd.splat_f32s(how.start());
    let (vectors, rest) = S::as_simd_f32s(row);
    let (fours, ones) = vectors.as_chunks::<4>();
    let mut most = [start; 4];
    for four in fours {
        for (most, x) in most.iter_mut().zip(four) {
            *most = how.join(simd, *most, *x);
        }
    }
    for one in ones {
        most[0] = how.join(simd, most[0], *one);
    }
    let pair = [
        how.join(simd, most[0], most[1]),
        how.join(simd, most[2], most[3]),
    ];
    let mut lanes = [how.start(); 16];
    store_some(simd, &mut lanes, how.join(simd, pair[0], pair[1]));
    let all = lanes.iter().chain(rest);
    all.fold(how.start(), |a, b| how.join_one(a, *b))
}

/// Joins each float with its partner.
#[inline(always)]
fn join_all<S: Simd>(simd: S, how: Reduction, out: &mut [f32], x: &[f32]) {
    let (outs, rest) = S::as_mut_simd_f32s(out);
    let (vectors, x_rest) = S::as_simd_f32s(x);
    for (out, x) in outs.iter_mut().zip(vectors) {
        *out = how.join(simd, *out, *x);
    }
    if !rest.is_empty() {
        let y = how.join(simd, load_some(simd, rest), load_some(simd, x_rest));
        store_some(simd, rest, y);
    }
}

source!(Reduction);
