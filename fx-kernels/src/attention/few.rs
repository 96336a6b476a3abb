//! Attention of a few queries: keys and values are read once for all heads that share them.

use pulp::{Simd, WithSimd};

use super::operands::{Attention, HeadRows};
use crate::Level;
use crate::convert::Element;
use crate::math::{exp_negative, map};
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
    lend(scores + wide, |space| {
        let (scores, wide) = space.split_at_mut(scores);
        level.run(Job {
            sizes,
            q,
            k,
            v,
            of,
            first: of[1] * (sizes.heads / sizes.kv_heads) * sizes.queries + first,
            out,
            scores,
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
            wide,
        } = self;
        let Attention {
            queries,
            keys,
            size,
            value_size,
            ..
        } = *sizes;
        let together = keys.min(TOGETHER);
        let head = |row: usize| ((first + row) / queries, (first + row) % queries);
        for start in (0..keys).step_by(TOGETHER) {
            let count = TOGETHER.min(keys - start);
            let (block, pitch) = k.floats(of, [start, count, size], wide);
            // What comes next from memory comes while this is computed with.
            match start + count < keys {
                true => k.ask(of, [start + count, together, size]),
                false => v.ask(of, [0, together, value_size]),
            }
            for (row, scores) in scores.chunks_exact_mut(keys).enumerate() {
                let (head, query) = head(row);
                let seen = sizes.seen(query).saturating_sub(start).min(count);
                let query = q.row([of[0], head], query, size);
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
            v.ask(of, [start + count, together, value_size]);
            let weights = |row: usize| {
                let seen = sizes.seen(head(row).1).saturating_sub(start).min(count);
                &scores[row * keys + start..][..seen]
            };
            for (pair, out) in out.chunks_mut(2).enumerate() {
                let first = 2 * pair;
                match out {
                    [one, other] if weights(first).len() == weights(first + 1).len() => {
                        let both = [weights(first), weights(first + 1)];
                        weigh(simd, both, block, pitch, [one, other]);
                    }
                    rows => rows.iter_mut().enumerate().for_each(|(i, out)| {
                        weigh(simd, [weights(first + i)], block, pitch, [out]);
                    }),
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

/// Adds to each of the results the sum of rows, each times its weight. The results have as many weights; together they read
/// each row once, and none waits for the sum before.
#[inline(always)]
fn weigh<S: Simd, const RESULTS: usize>(
    simd: S,
    weights: [&[f32]; RESULTS],
    rows: &[f32],
    pitch: usize,
    mut out: [&mut [f32]; RESULTS],
) {
    let lanes = S::F32_LANES;
    let (count, columns) = (weights[0].len(), out[0].len());
    debug_assert!(weights.iter().all(|weights| weights.len() == count));
    if count == 0 {
        return;
    }
    let mut at = 0;
    while at + 4 * lanes <= columns {
        let mut sums = [[simd.splat_f32s(0.0); 4]; RESULTS];
        for j in 0..count {
            let row = S::as_simd_f32s(&rows[j * pitch + at..][..4 * lanes]).0;
            let row = [row[0], row[1], row[2], row[3]];
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(weights[j]);
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum = simd.mul_add_e_f32s(weight, x, *sum);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (i, sum) in sums.into_iter().enumerate() {
                add(simd, sum, &mut out[at + i * lanes..][..lanes]);
            }
        }
        at += 4 * lanes;
    }
    while at < columns {
        let end = columns.min(at + lanes);
        for (out, weights) in out.iter_mut().zip(weights) {
            let mut sum = simd.splat_f32s(0.0);
            for (j, weight) in weights.iter().enumerate() {
                let row = load_some(simd, &rows[j * pitch + at..j * pitch + end]);
                sum = simd.mul_add_e_f32s(simd.splat_f32s(*weight), row, sum);
            }
            add(simd, sum, &mut out[at..end]);
        }
        at = end;
    }
}

/// Adds a vector to its place, which may be shorter.
#[inline(always)]
fn add<S: Simd>(simd: S, sum: S::f32s, out: &mut [f32]) {
    let total = simd.add_f32s(load_some(simd, out), sum);
    store_some(simd, out, total);
}
