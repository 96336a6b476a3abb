//! Attention of a few queries: keys and values are read once for all heads that share them.

use pulp::{Simd, WithSimd};

use super::dots::dots;
use super::operands::{Attention, HeadRows};
use crate::Level;
use crate::convert::Element;
use crate::math::{exp_negative, map};
use crate::norm::{largest, sum};
use crate::scratch::lend;
use crate::vector::{inlined, load_some, store_some};

/// The most queries that are done so.
pub(super) const FEW: usize = 3;

/// The most results that read values together: their sums stay in registers.
const RESULTS: usize = 4;

/// The bytes of keys or values that all queries read before the next ones: near enough to be read several times, and not
/// more than memory can be asked for meanwhile.
const TOGETHER: usize = 8 << 10;

/// How many keys or values of so many elements all queries read together.
fn together<T>(columns: usize) -> usize {
    let row = columns.max(1) * size_of::<T>();
    (TOGETHER / row).clamp(16, 64).next_multiple_of(16)
}

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
    let (keys, values) = (together::<T>(sizes.size), together::<T>(sizes.value_size));
    let wide = k
        .space(keys.min(sizes.keys), sizes.size)
        .max(v.space(values.min(sizes.keys), sizes.value_size));
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
        let (keys_together, values_together) = (together::<T>(size), together::<T>(value_size));
        let head = |row: usize| ((first + row) / queries, (first + row) % queries);
        for start in (0..keys).step_by(keys_together) {
            let count = keys_together.min(keys - start);
            let (block, pitch) = k.floats(of, [start, count, size], wide);
            // What comes next from memory comes while this is computed with, a part for each row.
            let next = |part: usize, parts: usize| match start + count < keys {
                true => k.ask(
                    of,
                    part_of([start + count, keys_together, size], part, parts),
                ),
                false => v.ask(of, part_of([0, values_together, value_size], part, parts)),
            };
            let rows = scores.len() / keys;
            for (row, scores) in scores.chunks_exact_mut(keys).enumerate() {
                let (head, query) = head(row);
                let seen = sizes.seen(query).saturating_sub(start).min(count);
                let query = q.row([of[0], head], query, size);
                next(row, rows);
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
        for start in (0..keys).step_by(values_together) {
            let count = values_together.min(keys - start);
            let (block, pitch) = v.floats(of, [start, count, value_size], wide);
            let next = [start + count, values_together, value_size];
            let groups = out.len().div_ceil(RESULTS);
            let weights = |row: usize| {
                let seen = sizes.seen(head(row).1).saturating_sub(start).min(count);
                &scores[row * keys + start..][..seen]
            };
            for (group, out) in out.chunks_mut(RESULTS).enumerate() {
                let first = RESULTS * group;
                v.ask(of, part_of(next, group, groups));
                let seen = weights(first).len();
                let is_alike = (first..first + out.len()).all(|row| weights(row).len() == seen);
                macro_rules! weigh {
                    ($($i:literal)*) => {
                        weigh(simd, [$(weights(first + $i)),*], block, pitch, out)
                    };
                }
                match (is_alike, out.len()) {
                    (true, 4) => weigh!(0 1 2 3),
                    (true, 3) => weigh!(0 1 2),
                    (true, 2) => weigh!(0 1),
                    _ => out.iter_mut().enumerate().for_each(|(i, out)| {
                        let out = std::slice::from_mut(out);
                        weigh(simd, [weights(first + i)], block, pitch, out);
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

/// One of equal parts of some keys or values: the first, how many, and their floats.
#[inline(always)]
fn part_of([first, count, columns]: [usize; 3], part: usize, parts: usize) -> [usize; 3] {
    let each = count.div_ceil(parts.max(1));
    let from = (part * each).min(count);
    [first + from, each.min(count - from), columns]
}

/// Adds to each of the results rows, each times its weight, one after another. The results have as many weights; together
/// they read each row once, and none waits for the sum before.
#[inline(always)]
fn weigh<S: Simd, const RESULTS: usize>(
    simd: S,
    weights: [&[f32]; RESULTS],
    rows: &[f32],
    pitch: usize,
    out: &mut [&mut [f32]],
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
        for (sums, out) in sums.iter_mut().zip(&*out) {
            let out = S::as_simd_f32s(&out[at..][..4 * lanes]).0;
            *sums = [out[0], out[1], out[2], out[3]];
        }
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
        for (sums, out) in sums.iter().zip(&mut *out) {
            S::as_mut_simd_f32s(&mut out[at..][..4 * lanes])
                .0
                .copy_from_slice(sums);
        }
        at += 4 * lanes;
    }
    while at < columns {
        let end = columns.min(at + lanes);
        for (out, weights) in out.iter_mut().zip(weights) {
            let mut sum = load_some(simd, &out[at..end]);
            for (j, weight) in weights.iter().enumerate() {
                let row = load_some(simd, &rows[j * pitch + at..j * pitch + end]);
                sum = simd.mul_add_e_f32s(simd.splat_f32s(*weight), row, sum);
            }
            store_some(simd, &mut out[at..end], sum);
        }
        at = end;
    }
}
