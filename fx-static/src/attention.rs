//! Attention: the scores of one query at a time.

use crate::kernel::{Kernel, next, next_if};
use crate::source::source;
use crate::vector::dot;

/// What a mask means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskKind {
    /// It is added to the scores.
    Added,
    /// 0 where a query may not attend to a key.
    Allowed,
    /// Not 0 where a query may not attend to a key.
    Forbidden,
}

/// Attention of heads. Reads queries, keys, values, and a mask where it has one; writes `[batch, queries, heads,
/// value_size]`, and behind it a score for each key.
///
/// ```
/// use fx_static::{Attention, Kernel};
///
/// let attention = Attention {
///     sizes: [1, 1, 1, 2],
///     kv_heads: 1,
///     size: 1,
///     value_size: 1,
///     scale: 1.0,
///     is_causal: false,
///     is_safe: true,
///     mask: None,
///     q: [1; 4],
///     k: [2, 2, 1, 1],
///     v: [2, 2, 1, 1],
///     mask_strides: [0; 4],
/// };
/// let mut out = [0.0; 3];
/// attention.run(&[&[0.0], &[1.0, 2.0], &[10.0, 20.0]], &mut out);
/// assert_eq!(out[0], 15.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Texts, heads, queries, keys.
    pub sizes: [usize; 4],
    /// The heads of keys and values: each is that of as many heads of queries.
    pub kv_heads: usize,
    /// The floats of a query and a key.
    pub size: usize,
    /// The floats of a value.
    pub value_size: usize,
    /// What scores are multiplied by.
    pub scale: f32,
    /// Whether a query attends to no keys behind it.
    pub is_causal: bool,
    /// Whether a query that attends to nothing gives zeros, and not NaN.
    pub is_safe: bool,
    /// What the mask means, if there is one.
    pub mask: Option<MaskKind>,
    /// The floats from a text, a head, a place and a column of queries to the next.
    pub q: [usize; 4],
    /// Those of keys.
    pub k: [usize; 4],
    /// Those of values.
    pub v: [usize; 4],
    /// Those of the mask, over texts, heads, queries and keys.
    pub mask_strides: [usize; 4],
}

impl Attention {
    /// What is added to the score of a key.
    fn added(&self, mask: f32) -> f32 {
        let is_allowed = match self.mask {
            Some(MaskKind::Allowed) => mask != 0.0,
            Some(MaskKind::Forbidden) => mask == 0.0,
            _ => return mask,
        };
        if is_allowed { 0.0 } else { f32::NEG_INFINITY }
    }
}

impl Kernel for Attention {
    fn run(&self, reads: &[&[f32]], out: &mut [f32]) {
        let reads = &mut reads.iter();
        let (q, k, v) = (next(reads), next(reads), next(reads));
        let mask = next_if(reads, self.mask.is_some());
        let [batch, heads, queries, keys] = self.sizes;
        let count = batch * queries * heads * self.value_size;
        let (out, scores) = out.split_at_mut(count);
        if count == 0 {
            return;
        }
        for (at, out) in out.chunks_exact_mut(self.value_size).enumerate() {
            let (b, query, head) = (at / (queries * heads), at / heads % queries, at % heads);
            let kv_head = head / (heads / self.kv_heads);
            let q_first = b * self.q[0] + head * self.q[1] + query * self.q[2];
            let k_first = b * self.k[0] + kv_head * self.k[1];
            for (key, score) in scores.iter_mut().enumerate() {
                if self.is_causal && key > query {
                    *score = f32::NEG_INFINITY;
                    continue;
                }
                let first = k_first + key * self.k[2];
                let product = match (self.q[3], self.k[3]) {
                    (1, 1) => dot(&q[q_first..][..self.size], &k[first..][..self.size]),
                    _ => (0..self.size)
                        .map(|i| q[q_first + i * self.q[3]] * k[first + i * self.k[3]])
                        .sum(),
                };
                let [of_b, of_head, of_query, of_key] = self.mask_strides;
                let added = mask.map_or(0.0, |mask| {
                    self.added(mask[b * of_b + head * of_head + query * of_query + key * of_key])
                });
                *score = product * self.scale + added;
            }
            let is_blind = scores.iter().all(|score| *score == f32::NEG_INFINITY);
            if self.is_safe && is_blind {
                out.fill(0.0);
                continue;
            }
            softmax_in_place(scores);
            out.fill(0.0);
            for (key, weight) in scores.iter().enumerate().take(keys) {
                let first = b * self.v[0] + kv_head * self.v[1] + key * self.v[2];
                for (i, out) in out.iter_mut().enumerate() {
                    *out += weight * v[first + i * self.v[3]];
                }
            }
        }
    }
}

/// Scores as weights whose sum is 1.
fn softmax_in_place(scores: &mut [f32]) {
    let most = scores.iter().fold(
        f32::NEG_INFINITY,
        |m, x| {
            if *x > m || x.is_nan() { *x } else { m }
        },
    );
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = crate::point::exp_negative(*score - most);
        total += *score;
    }
    for score in scores.iter_mut() {
        *score /= total;
    }
}

source!(MaskKind);
source!(Attention {
    sizes,
    kv_heads,
    size,
    value_size,
    scale,
    is_causal,
    is_safe,
    mask,
    q,
    k,
    v,
    mask_strides
});
