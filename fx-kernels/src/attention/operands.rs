//! What attention is computed of: sizes, rows of heads and masks, and what a task has of them.
//!
//! Invariant: what `check` has passed lies inside of its slice.

use fx_simd::prefetch;

use crate::convert::Element;
use crate::error::{SizeError, check};
use crate::matrix::panels::Strided;
use crate::transpose::span;

/// Rows of heads inside of a slice of floats or of [`Element`]s that are read as such: number c of head h at place p of sequence b is
/// `data[start + b * batch + h * head + p * place + c * column]`.
#[derive(Debug, Clone, Copy)]
pub struct HeadRows<'a, T = f32> {
    /// The elements.
    pub data: &'a [T],
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

impl<T> HeadRows<'_, T> {
    /// Where the row of a place is.
    #[inline(always)]
    fn at(&self, [batch, head]: [usize; 2], place: usize) -> usize {
        self.start + batch * self.batch + head * self.head + place * self.place
    }
}

impl<'a> HeadRows<'a> {
    /// A row of one float after another.
    #[inline(always)]
    pub(super) fn row(&self, of: [usize; 2], place: usize, columns: usize) -> &'a [f32] {
        &self.data[self.at(of, place)..][..columns]
    }

    /// The rows of a head.
    pub(super) fn rows(&self, batch: usize, head: usize, columns: usize) -> Strided<'a> {
        Strided {
            data: self.data,
            start: self.at([batch, head], 0),
            row: self.place,
            column: self.column,
            columns,
        }
    }
}

impl<'a, T: Element> HeadRows<'a, T> {
    /// The floats of space that `count` rows need to be read as [`floats`](HeadRows::floats).
    pub(super) fn space(&self, count: usize, columns: usize) -> usize {
        match self.column == 1 && T::as_floats(&[]).is_some() {
            true => 0,
            false => count * columns,
        }
    }

    /// `count` rows of a head from place `first` on, as floats: where they are, or in `space`, which has `columns` floats for
    /// each. The second is how far a row is from the next.
    #[inline(always)]
    pub(super) fn floats<'s>(
        &self,
        of: [usize; 2],
        [first, count, columns]: [usize; 3],
        space: &'s mut [f32],
    ) -> (&'s [f32], usize)
    where
        'a: 's,
    {
        let start = self.at(of, first);
        if let Some(floats) = T::as_floats(self.data)
            && self.column == 1
        {
            // Of no rows, the start may be anywhere.
            return (floats.get(start..).unwrap_or_default(), self.place);
        }
        let space = &mut space[..count * columns];
        if space.is_empty() {
            return (space, columns);
        }
        if self.column == 1 && self.place == columns {
            T::widen(&self.data[start..][..space.len()], space);
            return (space, columns);
        }
        for (i, out) in space.chunks_exact_mut(columns.max(1)).enumerate() {
            let row = &self.data[start + i * self.place..];
            match self.column {
                1 => T::widen(&row[..columns], out),
                column => {
                    for (c, out) in out.iter_mut().enumerate() {
                        *out = row[c * column].to_f32();
                    }
                }
            }
        }
        (space, columns)
    }

    /// Asks for `count` rows of a head from place `first` on, or for those of them that there are, which are read soon.
    #[inline(always)]
    pub(super) fn ask(&self, of: [usize; 2], [first, count, columns]: [usize; 3]) {
        /// The bytes that come together.
        const LINE: usize = 64;
        let start = self.at(of, first);
        let (rows, columns) = match self.place == columns {
            true => (1, count * columns),
            false => (count, columns),
        };
        for row in 0..rows {
            let from = (start + row * self.place).min(self.data.len());
            let to = (from + columns).min(self.data.len());
            let row = &self.data[from..to];
            row.iter().step_by(LINE / size_of::<T>()).for_each(prefetch);
        }
    }

    /// All rows of a head, as floats.
    pub(super) fn strided<'s>(
        &self,
        of: [usize; 2],
        [count, columns]: [usize; 2],
        space: &'s mut [f32],
    ) -> Strided<'s>
    where
        'a: 's,
    {
        let (data, row) = self.floats(of, [0, count, columns], space);
        Strided {
            data,
            start: 0,
            row,
            column: 1,
            columns,
        }
    }

    pub(super) fn check(&self, what: &'static str, sizes: [usize; 4]) -> Result<(), SizeError> {
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
    pub(super) fn apply(&self, [b, h, i, key]: [usize; 4], scores: &mut [f32]) {
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

/// The order of the result of [`attention`](super::attention).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOrder {
    /// `[batch, heads, queries, value_size]`, as PyTorch's function returns it.
    #[default]
    HeadsFirst,
    /// `[batch, queries, heads, value_size]`: ready for the projection that follows.
    PlacesFirst,
}

/// The sizes and kind of an [`attention`](super::attention).
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

    /// How many heads of the queries share one of the keys and values, where all lie inside of their slices.
    pub(super) fn check<T: Element>(
        &self,
        q: HeadRows<'_>,
        k: HeadRows<'_, T>,
        v: HeadRows<'_, T>,
    ) -> Result<usize, SizeError> {
        let Attention {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            size,
            value_size,
            ..
        } = *self;
        let group = heads.checked_div(kv_heads).unwrap_or(0);
        check("the list of heads", group * kv_heads, heads)?;
        q.check("the queries", [batch, heads, queries, size])?;
        k.check("the keys", [batch, kv_heads, keys, size])?;
        v.check("the values", [batch, kv_heads, keys, value_size])?;
        if let Some(mask) = &self.mask {
            let span = span(mask.start, &[batch, heads, queries, keys], &mask.strides);
            let len = match mask.data {
                MaskData::Add(data) => data.len(),
                MaskData::Keep(data) => data.len(),
            };
            check("the mask", span.max(len), len)?;
        }
        Ok(group)
    }

    /// How many of the keys a query sees, by order alone.
    pub(super) fn seen(&self, query: usize) -> usize {
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
    pub(super) fn factor(&self, sum: f32) -> f32 {
        match self.zero_if_masked && sum == 0.0 {
            true => 0.0,
            false => 1.0 / sum,
        }
    }
}

/// Some queries of a head.
pub(super) struct Task<'t, 'o> {
    pub(super) batch: usize,
    pub(super) head: usize,
    pub(super) first: usize,
    pub(super) out: &'t mut [&'o mut [f32]],
}

/// The operands of a head.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) q: Strided<'a>,
    pub(super) k: Strided<'a>,
    pub(super) v: Strided<'a>,
}
