//! The gradients of attention: of a block of queries at a time, whose scores are computed again.
//!
//! Invariant: the sums over queries are in their order, whatever the number of threads.

use rayon::prelude::*;

use super::SERIAL;
use super::operands::{Attention, HeadRows, Operands};
use crate::error::{SizeError, check};
use crate::matrix::finish::Ending;
use crate::matrix::panels::Strided;
use crate::matrix::product::Product;
use crate::matrix::tile::even;
use crate::norm::softmax;
use crate::scratch::lend;
use crate::terms::Floats;
use crate::{Level, vector};

/// The most queries of a block.
const QUERIES: usize = 64;

/// Where [`attention_backward`] writes: `[batch, heads, queries, size]`, `[batch, kv_heads, keys, size]` and
/// `[batch, kv_heads, keys, value_size]`.
#[derive(Debug)]
pub struct AttentionGradients<'o> {
    /// Of the queries.
    pub q: &'o mut [f32],
    /// Of the keys.
    pub k: &'o mut [f32],
    /// Of the values.
    pub v: &'o mut [f32],
}

/// The gradients of the queries, keys and values of [`attention`](super::attention), from that of its result.
///
/// Beyond the results it needs about 64 rows of scores for each thread.
///
/// # Errors
///
/// Where an operand or the mask leaves its slice, a result has another length than the sizes ask for, or `heads` is no
/// multiple of `kv_heads`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::attention::{Attention, AttentionGradients, HeadRows, attention_backward};
///
/// // One query, two keys that are alike: the values share the gradient.
/// let rows = |data| HeadRows { data, start: 0, batch: 2, head: 2, place: 1, column: 1 };
/// let (q, k, v) = (rows(&[1.0]), rows(&[3.0, 3.0]), rows(&[4.0, 6.0]));
/// let sizes = Attention { queries: 1, ..Attention::new(1, 1, 2, 1) };
/// let (mut dq, mut dk, mut dv) = ([0.0; 1], [0.0; 2], [0.0; 2]);
/// let out = AttentionGradients { q: &mut dq, k: &mut dk, v: &mut dv };
/// attention_backward(Level::best(), sizes, q, k, v, rows(&[1.0]), out)?;
/// assert_eq!((dq, dk, dv), ([0.0], [-0.5, 0.5], [0.5, 0.5]));
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn attention_backward(
    level: Level,
    sizes: Attention<'_>,
    q: HeadRows<'_>,
    k: HeadRows<'_>,
    v: HeadRows<'_>,
    grad: HeadRows<'_>,
    out: AttentionGradients<'_>,
) -> Result<(), SizeError> {
    let Attention {
        batch,
        heads,
        kv_heads,
        queries,
        keys,
        size,
        value_size,
        ..
    } = sizes;
    let group = sizes.check(q, k, v)?;
    grad.check(
        "the gradient of the result",
        [batch, heads, queries, value_size],
    )?;
    let (of_q, of_k, of_v) = (group * queries * size, keys * size, keys * value_size);
    let count = batch * kv_heads;
    check("the gradients of the queries", count * of_q, out.q.len())?;
    check("the gradients of the keys", count * of_k, out.k.len())?;
    check("the gradients of the values", count * of_v, out.v.len())?;
    if of_q == 0 || of_k == 0 || of_v == 0 {
        for out in [out.q, out.k, out.v] {
            out.fill(0.0);
        }
        return Ok(());
    }
    let run = |at: usize, dq: &mut [f32], dk: &mut [f32], dv: &mut [f32]| {
        let (b, kv) = (at / kv_heads, at % kv_heads);
        dk.fill(0.0);
        dv.fill(0.0);
        for (head, dq) in dq.chunks_mut(queries * size).enumerate() {
            let head = kv * group + head;
            let job = Head {
                level,
                sizes: &sizes,
                place: [b, head],
                operands: Operands {
                    q: q.rows(b, head, size),
                    k: k.rows(b, kv, size),
                    v: v.rows(b, kv, value_size),
                },
                grad: grad.rows(b, head, value_size),
            };
            for (first, rows) in even(queries, QUERIES) {
                job.block(first, rows, &mut dq[first * size..][..rows * size], dk, dv);
            }
        }
    };
    let is_small = batch * heads * queries * keys * (size + value_size) < SERIAL;
    let least = if is_small { count.max(1) } else { 1 };
    out.q
        .par_chunks_mut(of_q)
        .zip(out.k.par_chunks_mut(of_k))
        .zip(out.v.par_chunks_mut(of_v))
        .enumerate()
        .with_min_len(least)
        .for_each(|(at, ((dq, dk), dv))| run(at, dq, dk, dv));
    Ok(())
}

/// A head of the queries.
struct Head<'a> {
    level: Level,
    sizes: &'a Attention<'a>,
    /// Of the sequence and of the head.
    place: [usize; 2],
    operands: Operands<'a>,
    grad: Strided<'a>,
}

impl Head<'_> {
    /// Adds what a block of queries gives.
    fn block(&self, first: usize, rows: usize, dq: &mut [f32], dk: &mut [f32], dv: &mut [f32]) {
        let Attention {
            size,
            value_size,
            scale,
            ..
        } = *self.sizes;
        let seen = self.sizes.seen(first + rows - 1);
        if seen == 0 {
            dq.fill(0.0);
            return;
        }
        let scores = rows * seen;
        lend(2 * scores + seen * size.max(value_size), |space| {
            let (a, space) = space.split_at_mut(scores);
            let (b, partial) = space.split_at_mut(scores);
            let q = from(self.operands.q, first);
            let grad = from(self.grad, first);
            // The scores, then the weights.
            self.product(
                [rows, size, seen],
                q,
                turned(self.operands.k, seen),
                scale,
                a,
            );
            self.weights(first, seen, a, b);
            let weights = Strided {
                data: b,
                start: 0,
                row: seen,
                column: 1,
                columns: seen,
            };
            let partial_v = &mut partial[..seen * value_size];
            self.product(
                [seen, rows, value_size],
                turned(weights, rows),
                grad,
                1.0,
                partial_v,
            );
            add(self.level, partial_v, dv);
            // The gradients of the weights, then of the scores.
            self.product(
                [rows, value_size, seen],
                grad,
                turned(self.operands.v, seen),
                1.0,
                a,
            );
            vector::plain(self.level, || {
                for (of, weights) in a.chunks_exact_mut(seen).zip(b.chunks_exact(seen)) {
                    let mean = vector::dot(of, weights);
                    for (x, weight) in of.iter_mut().zip(weights) {
                        *x = weight * (*x - mean);
                    }
                }
            });
            let slopes = Strided { data: a, ..weights };
            self.product([rows, seen, size], slopes, self.operands.k, scale, dq);
            let partial_k = &mut partial[..seen * size];
            self.product(
                [seen, rows, size],
                turned(slopes, rows),
                q,
                scale,
                partial_k,
            );
            add(self.level, partial_k, dk);
        });
    }

    fn product(
        &self,
        [rows, depth, columns]: [usize; 3],
        left: Strided<'_>,
        right: Strided<'_>,
        factor: f32,
        out: &mut [f32],
    ) {
        Product {
            terms: Floats,
            rows,
            columns,
            depth,
            left,
            right: &right,
            ending: Ending {
                factor: (factor != 1.0).then_some(factor),
                ..Ending::default()
            },
        }
        .run(self.level, out);
    }

    /// The softmax of the scores that each query sees.
    fn weights(&self, first: usize, seen: usize, scores: &mut [f32], weights: &mut [f32]) {
        let [b, h] = self.place;
        for (i, scores) in scores.chunks_exact_mut(seen).enumerate() {
            let own = self.sizes.seen(first + i).min(seen);
            scores[own..].fill(f32::NEG_INFINITY);
            if let Some(mask) = &self.sizes.mask {
                mask.apply([b, h, first + i, 0], &mut scores[..own]);
            }
        }
        softmax(self.level, seen, scores, weights).expect("both are whole rows");
        if !self.sizes.zero_if_masked {
            return;
        }
        let rows = scores
            .chunks_exact(seen)
            .zip(weights.chunks_exact_mut(seen));
        for (scores, weights) in rows {
            if scores.iter().all(|score| *score == f32::NEG_INFINITY) {
                weights.fill(0.0);
            }
        }
    }
}

/// The rows from one on.
fn from(x: Strided<'_>, first: usize) -> Strided<'_> {
    Strided {
        start: x.start + first * x.row,
        ..x
    }
}

/// The transpose of the first rows.
fn turned(x: Strided<'_>, rows: usize) -> Strided<'_> {
    Strided {
        row: x.column,
        column: x.row,
        columns: rows,
        ..x
    }
}

fn add(level: Level, from: &[f32], to: &mut [f32]) {
    vector::plain(level, || {
        for (to, from) in to.iter_mut().zip(from) {
            *to += from;
        }
    });
}
