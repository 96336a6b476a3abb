//! Scaled dot-product attention: sizes, masks, and how the work is cut into heads and blocks of
//! queries. The matrix of scores is never in memory.

mod blocks;
mod few;

use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::matrix::panels::Strided;
use crate::matrix::tile::even;
use crate::scratch::lend_parts;
use crate::transpose::span;

/// Rows of heads inside of a slice: float c of head h at place p of sequence b is
/// `data[start + b * batch + h * head + p * place + c * column]`.
#[derive(Debug, Clone, Copy)]
pub struct HeadRows<'a> {
    /// The floats.
    pub data: &'a [f32],
    /// Where the first one is.
    pub start: usize,
    /// The floats from a sequence to the next.
    pub batch: usize,
    /// The floats from a head to the next.
    pub head: usize,
    /// The floats from a place to the next.
    pub place: usize,
    /// The floats from a float of a row to the next: 1 in all but odd cases.
    pub column: usize,
}

impl<'a> HeadRows<'a> {
    /// The rows of a head.
    fn rows(&self, batch: usize, head: usize, columns: usize) -> Strided<'a> {
        let start = self.start + batch * self.batch + head * self.head;
        Strided {
            data: self.data,
            start,
            row: self.place,
            column: self.column,
            columns,
        }
    }

    fn check(&self, what: &'static str, sizes: [usize; 4]) -> Result<(), SizeError> {
        let span = span(
            self.start,
            &sizes,
            &[self.batch, self.head, self.place, self.column],
        );
        check(what, span.max(self.data.len()), self.data.len())
    }
}

/// The entries of a mask.
#[derive(Debug, Clone, Copy)]
pub enum MaskData<'a> {
    /// Added to the scores.
    Add(&'a [f32]),
    /// Scores count where this is true.
    Keep(&'a [bool]),
}

/// A mask over scores: the entry of sequence b, head h, query i and key j is at
/// `start + b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3]`; a stride of 0
/// broadcasts.
#[derive(Debug, Clone, Copy)]
pub struct Mask<'a> {
    /// The entries.
    pub data: MaskData<'a>,
    /// Where the first one is.
    pub start: usize,
    /// From a sequence, head, query, key to the next.
    pub strides: [usize; 4],
}

impl Mask<'_> {
    /// Changes the scores of a query with the first keys from `key` on.
    #[inline(always)]
    fn apply(&self, [b, h, i, key]: [usize; 4], scores: &mut [f32]) {
        let [sb, sh, si, step] = self.strides;
        let at = self.start + b * sb + h * sh + i * si + key * step;
        match (self.data, step) {
            (MaskData::Add(data), 1) => {
                let data = &data[at..at + scores.len()];
                scores
                    .iter_mut()
                    .zip(data)
                    .for_each(|(score, x)| *score += x);
            }
            (MaskData::Add(data), _) => {
                for (j, score) in scores.iter_mut().enumerate() {
                    *score += data[at + j * step];
                }
            }
            (MaskData::Keep(data), _) => {
                for (j, score) in scores.iter_mut().enumerate() {
                    *score = if data[at + j * step] {
                        *score
                    } else {
                        f32::NEG_INFINITY
                    };
                }
            }
        }
    }
}

/// The order of the result of [`attention`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOrder {
    /// `[batch, heads, queries, value_size]`, as PyTorch's function returns it.
    #[default]
    HeadsFirst,
    /// `[batch, queries, heads, value_size]`: ready for the projection that follows.
    PlacesFirst,
}

/// The sizes and kind of an [`attention`].
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// Sequences.
    pub batch: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; query head h uses head `h / (heads / kv_heads)`.
    pub kv_heads: usize,
    /// Places of the queries.
    pub queries: usize,
    /// Places of the keys and values.
    pub keys: usize,
    /// Floats of a query and of a key.
    pub size: usize,
    /// Floats of a value.
    pub value_size: usize,
    /// What a product of query and key is multiplied by.
    pub scale: f32,
    /// Where this is `Some(offset)`, query i sees keys `j <= i + offset`. PyTorch's `is_causal` is
    /// `Some(0)`; after a cache of n keys it is `Some(n)`.
    pub causal: Option<isize>,
    /// A mask besides.
    pub mask: Option<Mask<'a>>,
    /// What a query gets that sees no key: zeros, as PyTorch's function since 2.5, or NaN, as a
    /// softmax of minus infinities.
    pub zero_if_masked: bool,
    /// The order of the result.
    pub order: OutOrder,
}

impl<'a> Attention<'a> {
    /// Attention of `heads` heads of `size` floats over as many queries as keys, without a mask; the
    /// scale is `1 / sqrt(size)`.
    pub fn new(batch: usize, heads: usize, length: usize, size: usize) -> Attention<'a> {
        Attention {
            batch,
            heads,
            kv_heads: heads,
            queries: length,
            keys: length,
            size,
            value_size: size,
            scale: 1.0 / (size as f32).sqrt(),
            causal: None,
            mask: None,
            zero_if_masked: false,
            order: OutOrder::default(),
        }
    }

    /// How many of the keys a query sees, by order alone.
    fn seen(&self, query: usize) -> usize {
        match self.causal {
            None => self.keys,
            Some(offset) => {
                let last = (query as isize).saturating_add(offset);
                usize::try_from(last.saturating_add(1))
                    .unwrap_or(0)
                    .min(self.keys)
            }
        }
    }

    /// One over the sum of a row's exponentials.
    fn factor(&self, sum: f32) -> f32 {
        match self.zero_if_masked && sum == 0.0 {
            true => 0.0,
            false => 1.0 / sum,
        }
    }
}

/// Some queries of a head.
struct Task<'t, 'o> {
    batch: usize,
    head: usize,
    first: usize,
    out: &'t mut [&'o mut [f32]],
}

/// The operands of a head.
#[derive(Clone, Copy)]
struct Operands<'a> {
    q: Strided<'a>,
    k: Strided<'a>,
    v: Strided<'a>,
}

/// The multiply-adds below which the calling thread does everything.
const SERIAL: usize = 2 << 20;

/// `softmax(scale * q * k^T + mask) * v` for each head.
///
/// Beyond the result it needs less than 2 MB for each thread.
///
/// # Errors
///
/// Where an operand or the mask leaves its slice, `out` has another length than the sizes ask for, or
/// `heads` is no multiple of `kv_heads`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::attention::{Attention, HeadRows, attention};
///
/// // One head, two places of one float: both keys are alike, so values are averaged.
/// let rows = |data| HeadRows { data, start: 0, batch: 2, head: 2, place: 1, column: 1 };
/// let (q, k, v) = (rows(&[1.0, 2.0]), rows(&[3.0, 3.0]), rows(&[4.0, 6.0]));
/// let mut out = [0.0; 2];
/// attention(Level::best(), Attention::new(1, 1, 2, 1), q, k, v, &mut out)?;
/// assert_eq!(out, [5.0, 5.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn attention(
    level: Level,
    sizes: Attention<'_>,
    q: HeadRows<'_>,
    k: HeadRows<'_>,
    v: HeadRows<'_>,
    out: &mut [f32],
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
    let group = heads.checked_div(kv_heads).unwrap_or(0);
    check("the list of heads", group * kv_heads, heads)?;
    check(
        "the result",
        batch * heads * queries * value_size,
        out.len(),
    )?;
    q.check("the queries", [batch, heads, queries, size])?;
    k.check("the keys", [batch, kv_heads, keys, size])?;
    v.check("the values", [batch, kv_heads, keys, value_size])?;
    if let Some(mask) = &sizes.mask {
        let span = span(mask.start, &[batch, heads, queries, keys], &mask.strides);
        let len = match mask.data {
            MaskData::Add(data) => data.len(),
            MaskData::Keep(data) => data.len(),
        };
        check("the mask", span.max(len), len)?;
    }
    if out.is_empty() {
        return Ok(());
    }
    let run = |task: Task<'_, '_>| {
        let kv = task.head / group;
        let operands = Operands {
            q: q.rows(task.batch, task.head, size),
            k: k.rows(task.batch, kv, size),
            v: v.rows(task.batch, kv, value_size),
        };
        match queries <= few::FEW && k.column == 1 && v.column == 1 && q.column == 1 {
            true => few::run(level, &sizes, operands, task),
            false => blocks::run(level, &sizes, operands, task),
        }
    };
    // A task has up to 256 queries of a head, fewer where there are few heads.
    let mut most = 256;
    while most > 64 && batch * heads * queries.div_ceil(most) < 16 {
        most /= 2;
    }
    lend_parts(batch * heads * queries, |parts| {
        for (i, row) in out.chunks_mut(value_size).enumerate() {
            let (b, rest) = (i / (heads * queries), i % (heads * queries));
            let (head, query) = match sizes.order {
                OutOrder::HeadsFirst => (rest / queries, rest % queries),
                OutOrder::PlacesFirst => (rest % heads, rest / heads),
            };
            parts[(b * heads + head) * queries + query] = row;
        }
        let mut tasks = Vec::with_capacity(batch * heads * queries.div_ceil(most));
        for (i, mut rest) in parts.chunks_mut(queries).enumerate() {
            for (first, rows) in even(queries, most) {
                let (out, later) = rest.split_at_mut(rows);
                rest = later;
                tasks.push(Task {
                    batch: i / heads,
                    head: i % heads,
                    first,
                    out,
                });
            }
        }
        match batch * heads * queries * keys * (size + value_size) < SERIAL {
            true => tasks.into_iter().for_each(run),
            false => tasks.into_par_iter().for_each(run),
        }
    });
    Ok(())
}
