//! Attention of a few queries: keys and values are read where they are, once for each query.

use pulp::{Simd, WithSimd};

use super::operands::{Attention, Operands, Task};
use crate::Level;
use crate::math::{exp_negative, map};
use crate::matrix::finish::zip;
use crate::norm::{largest, sum};
use crate::scratch::lend;
use crate::vector::{inlined, load_some, store_some};

/// The most queries that are done so.
pub(super) const FEW: usize = 3;

/// The keys whose values are summed before the sum is added to others.
const TOGETHER: usize = 512;

/// Does a task.
pub(super) fn run(level: Level, sizes: &Attention<'_>, operands: Operands<'_>, task: Task<'_, '_>) {
    lend(sizes.keys + sizes.value_size, |space| {
        let (scores, values) = space.split_at_mut(sizes.keys);
        level.run(Job {
            sizes,
            operands,
            task,
            scores,
            values,
        });
    });
}

struct Job<'a, 't, 'o> {
    sizes: &'a Attention<'a>,
    operands: Operands<'a>,
    task: Task<'t, 'o>,
    scores: &'a mut [f32],
    /// A partial sum of values.
    values: &'a mut [f32],
}

/// The product of two rows.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut sums = [simd.splat_f32s(0.0); 2];
    for (a, b) in a.chunks(2).zip(b.chunks(2)) {
        sums[0] = simd.mul_add_e_f32s(a[0], b[0], sums[0]);
        if let ([_, a], [_, b]) = (a, b) {
            sums[1] = simd.mul_add_e_f32s(*a, *b, sums[1]);
        }
    }
    if !a_rest.is_empty() {
        sums[0] = simd.mul_add_e_f32s(load_some(simd, a_rest), load_some(simd, b_rest), sums[0]);
    }
    simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]))
}

impl WithSimd for Job<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Job {
            sizes,
            operands: Operands { q, k, v },
            task,
            scores,
            values,
        } = self;
        for (i, out) in task.out.iter_mut().enumerate() {
            let query = task.first + i;
            let seen = sizes.seen(query);
            let scores = &mut scores[..seen];
            let row = &q.data[q.start + query * q.row..][..sizes.size];
            for (j, score) in scores.iter_mut().enumerate() {
                let key = &k.data[k.start + j * k.row..][..sizes.size];
                *score = dot(simd, row, key) * sizes.scale;
            }
            if let Some(mask) = &sizes.mask {
                mask.apply([task.batch, task.head, query, 0], scores);
            }
            let top = largest(simd, scores);
            let shift = simd.splat_f32s(if top == f32::NEG_INFINITY { 0.0 } else { top });
            inlined!(map(simd, scores; |x| exp_negative(simd, simd.sub_f32s(x, shift))));
            let factor = simd.splat_f32s(sizes.factor(inlined!(sum(simd, scores; |x| x))));
            out.fill(0.0);
            for (part, scores) in scores.chunks(TOGETHER).enumerate() {
                let start = v.start + part * TOGETHER * v.row;
                weigh(simd, scores, &v.data[start..], v.row, values);
                inlined!(zip(simd, out, values; |x, y| simd.add_f32s(x, y)));
            }
            inlined!(map(simd, out; |x| simd.mul_f32s(x, factor)));
        }
    }
}

/// The sum of rows, each times its weight.
#[inline(always)]
fn weigh<S: Simd>(simd: S, weights: &[f32], rows: &[f32], pitch: usize, out: &mut [f32]) {
    let lanes = S::F32_LANES;
    let mut at = 0;
    while at + 4 * lanes <= out.len() {
        let mut sums = [simd.splat_f32s(0.0); 4];
        for (j, weight) in weights.iter().enumerate() {
            let weight = simd.splat_f32s(*weight);
            let row = S::as_simd_f32s(&rows[j * pitch + at..][..4 * lanes]).0;
            sums[0] = simd.mul_add_e_f32s(weight, row[0], sums[0]);
            sums[1] = simd.mul_add_e_f32s(weight, row[1], sums[1]);
            sums[2] = simd.mul_add_e_f32s(weight, row[2], sums[2]);
            sums[3] = simd.mul_add_e_f32s(weight, row[3], sums[3]);
        }
        for sum in sums {
            crate::vector::store(simd, out, at, sum);
            at += lanes;
        }
    }
    while at < out.len() {
        let end = out.len().min(at + lanes);
        let mut sum = simd.splat_f32s(0.0);
        for (j, weight) in weights.iter().enumerate() {
            let row = load_some(simd, &rows[j * pitch + at..j * pitch + end]);
            sum = simd.mul_add_e_f32s(simd.splat_f32s(*weight), row, sum);
        }
        store_some(simd, &mut out[at..end], sum);
        at = end;
    }
}
