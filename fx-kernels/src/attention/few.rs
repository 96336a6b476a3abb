//! Attention of a few queries: keys and values are read once for all heads that share them.

use pulp::{Simd, WithSimd};

use super::operands::{Attention, HeadRows};
use crate::Level;
use crate::convert::Element;
use crate::math::{exp_negative, map};
use crate::matrix::finish::zip;
use crate::norm::{largest, sum};
use crate::scratch::lend;
use crate::vector::{inlined, load_some, store_some};

/// The most queries that are done so.
pub(super) const FEW: usize = 3;

/// The keys or values that all queries read before the next ones: near enough to be read several times.
const TOGETHER: usize = 64;

/// Does queries of the heads that share keys and values: `of` is a sequence and a head of these, `out` a row for each query
/// of each head, from row `first` on.
pub(super) fn run<T: Element>(
    level: Level,
    sizes: &Attention<'_>,
    (q, k, v): (HeadRows<'_>, HeadRows<'_, T>, HeadRows<'_, T>),
    of: [usize; 2],
    first: usize,
    out: &mut [&mut [f32]],
) {
    let scores = out.len() * sizes.keys;
    let together = sizes.keys.min(TOGETHER);
    let wide = k
        .space(together, sizes.size)
        .max(v.space(together, sizes.value_size));
    lend(scores + sizes.value_size + wide, |space| {
        let (scores, space) = space.split_at_mut(scores);
        let (values, wide) = space.split_at_mut(sizes.value_size);
        level.run(Job {
            sizes,
            q,
            k,
            v,
            of,
            first: of[1] * (sizes.heads / sizes.kv_heads) * sizes.queries + first,
            out,
            scores,
            values,
            wide,
        });
    });
}

struct Job<'a, 't, 'o, T> {
    sizes: &'a Attention<'a>,
    q: HeadRows<'a>,
    k: HeadRows<'a, T>,
    v: HeadRows<'a, T>,
    of: [usize; 2],
    /// The first of the rows, of those of all heads.
    first: usize,
    out: &'t mut [&'o mut [f32]],
    /// A row for each of the results.
    scores: &'a mut [f32],
    /// A partial sum of values.
    values: &'a mut [f32],
    /// Keys or values as floats, where they are something else.
    wide: &'a mut [f32],
}

/// The product of two rows.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut total = simd.splat_f32s(0.0);
    for (a, b) in a.iter().zip(b) {
        total = simd.mul_add_e_f32s(*a, *b, total);
    }
    if !a_rest.is_empty() {
        total = simd.mul_add_e_f32s(load_some(simd, a_rest), load_some(simd, b_rest), total);
    }
    simd.reduce_sum_f32s(total)
}

/// The products of a row with others, `pitch` floats apart, each times `scale`.
#[inline(always)]
fn dots<S: Simd>(simd: S, a: &[f32], rows: &[f32], pitch: usize, scale: f32, out: &mut [f32]) {
    let (vectors, rest) = S::as_simd_f32s(a);
    let (fours, last) = match rest {
        [] => out.as_chunks_mut::<4>(),
        _ => (&mut [][..], out),
    };
    let done = 4 * fours.len();
    for (i, out) in fours.iter_mut().enumerate() {
        let row = |j: usize| S::as_simd_f32s(&rows[(4 * i + j) * pitch..][..a.len()]).0;
        let rows = [row(0), row(1), row(2), row(3)];
        let mut sums = [simd.splat_f32s(0.0); 4];
        for (c, a) in vectors.iter().enumerate() {
            sums[0] = simd.mul_add_e_f32s(*a, rows[0][c], sums[0]);
            sums[1] = simd.mul_add_e_f32s(*a, rows[1][c], sums[1]);
            sums[2] = simd.mul_add_e_f32s(*a, rows[2][c], sums[2]);
            sums[3] = simd.mul_add_e_f32s(*a, rows[3][c], sums[3]);
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = simd.reduce_sum_f32s(sum) * scale;
        }
    }
    for (j, out) in last.iter_mut().enumerate() {
        *out = dot(simd, a, &rows[(done + j) * pitch..][..a.len()]) * scale;
    }
}

impl<T: Element> WithSimd for Job<'_, '_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Job {
            sizes,
            q,
            k,
            v,
            of,
            first,
            out,
            scores,
            values,
            wide,
        } = self;
        let Attention {
            queries,
            keys,
            size,
            value_size,
            ..
        } = *sizes;
        let head = |row: usize| ((first + row) / queries, (first + row) % queries);
        for start in (0..keys).step_by(TOGETHER) {
            let count = TOGETHER.min(keys - start);
            let (block, pitch) = k.floats(of, [start, count, size], wide);
            for (row, scores) in scores.chunks_exact_mut(keys).enumerate() {
                let (head, query) = head(row);
                let seen = sizes.seen(query).saturating_sub(start).min(count);
                let at = q.start + of[0] * q.batch + head * q.head + query * q.place;
                let query = &q.data[at..][..size];
                dots(
                    simd,
                    query,
                    block,
                    pitch,
                    sizes.scale,
                    &mut scores[start..][..seen],
                );
            }
        }
        for (row, scores) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
            let (head, query) = head(row);
            let scores = &mut scores[..sizes.seen(query)];
            if let Some(mask) = &sizes.mask {
                mask.apply([of[0], head, query, 0], scores);
            }
            let top = largest(simd, scores);
            let shift = simd.splat_f32s(if top == f32::NEG_INFINITY { 0.0 } else { top });
            inlined!(map(simd, scores; |x| exp_negative(simd, simd.sub_f32s(x, shift))));
        }
        out.iter_mut().for_each(|out| out.fill(0.0));
        for start in (0..keys).step_by(TOGETHER) {
            let count = TOGETHER.min(keys - start);
            let (block, pitch) = v.floats(of, [start, count, value_size], wide);
            for (row, (scores, out)) in scores.chunks_exact(keys).zip(&mut *out).enumerate() {
                let (_, query) = head(row);
                let seen = sizes.seen(query).saturating_sub(start).min(count);
                if seen > 0 {
                    weigh(simd, &scores[start..][..seen], block, pitch, values);
                    inlined!(zip(simd, out, values; |x, y| simd.add_f32s(x, y)));
                }
            }
        }
        for (row, out) in out.iter_mut().enumerate() {
            let (_, query) = head(row);
            let seen = sizes.seen(query);
            let total = match scores.get(row * keys..row * keys + seen) {
                Some(scores) => inlined!(sum(simd, scores; |x| x)),
                None => 0.0,
            };
            let factor = simd.splat_f32s(sizes.factor(total));
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
