//! Attention over arrays of floats, and its gradients.
//!
//! Invariant: what a mask of booleans forbids has minus infinity added to its score.

use std::sync::OnceLock;

use candle_core::{CpuStorage, Layout, Storage};
use fx_core::value::DType;
use fx_core::{Error, Result};
use fx_kernels::attention::{
    Attention, AttentionGradients, HeadRows, Mask as HeadMask, MaskData, OutOrder, attention,
    attention_backward,
};
use fx_kernels::pointwise::{Chain, Operand, Tape};
use smallvec::SmallVec;

use super::array::{Array, Dims};
use super::draft::{Attending, Id, Mask};
use super::frame::{Reading, Register, filled, sizes_differ};
use super::memory::Pool;
use super::types::float_type;
use crate::Tensor;

/// Queries, in four dimensions, and the sizes of attention by them.
struct Heads {
    q: Array,
    mask: Option<Array>,
    sizes: Attention<'static>,
    /// How many dimensions they had.
    rank: usize,
}

impl Heads {
    /// The same array with as many dimensions as there were.
    fn narrowed(&self, mut x: Array) -> Array {
        while x.dims.len() > self.rank {
            x = x.without(0);
        }
        x
    }

    fn all(&self) -> [usize; 4] {
        let Attention {
            batch,
            heads,
            queries,
            keys,
            ..
        } = self.sizes;
        [batch, heads, queries, keys]
    }
}

impl Reading<'_> {
    /// What a register holds, with four dimensions.
    fn four(&self, id: Id, pool: &mut Pool) -> Result<Array> {
        let mut x = self.array(id, pool)?;
        while x.dims.len() < 4 {
            x = x.with_one(0);
        }
        match x.dims.len() {
            4 => Ok(x),
            _ => Err(Error::msg("attention is over four dimensions")),
        }
    }

    /// The sizes of what a register holds, in four dimensions.
    fn four_dims(&self, id: Id, rank: usize) -> Result<[usize; 4]> {
        let dims = self.dims(id)?;
        if dims.len() != rank {
            return Err(Error::msg(
                "queries, keys and values have as many dimensions",
            ));
        }
        let mut four = [1; 4];
        four[4 - rank..].copy_from_slice(&dims);
        Ok(four)
    }

    fn heads(
        &self,
        qkv: &[Id],
        mask: Option<Id>,
        how: Attending,
        pool: &mut Pool,
    ) -> Result<Heads> {
        let q = self.four(qkv[0], pool)?;
        let rank = self.dims(qkv[0])?.len();
        let [batch, heads, queries, size] = four_sizes(&q);
        let [kb, kv_heads, keys, k_size] = self.four_dims(qkv[1], rank)?;
        let [vb, v_heads, v_keys, value_size] = self.four_dims(qkv[2], rank)?;
        if (kb, vb, v_heads, v_keys, k_size) != (batch, batch, kv_heads, keys, size) {
            return Err(Error::msg("queries, keys and values do not fit"));
        }
        if size == 0 {
            return Err(Error::msg("queries have no elements"));
        }
        let mut sizes = Attention::new(batch, heads, queries, size);
        sizes.kv_heads = kv_heads;
        sizes.keys = keys;
        sizes.value_size = value_size;
        sizes.causal = how.is_causal.then_some(0);
        sizes.zero_if_masked = how.is_safe;
        sizes.order = OutOrder::PlacesFirst;
        if let Some(scale) = how.scale {
            sizes.scale = scale;
        }
        let mask = match (how.mask, mask) {
            (Mask::None, _) | (_, None) => None,
            (mask, Some(id)) => Some(self.mask(id, mask, [batch, heads, queries, keys], pool)?),
        };
        Ok(Heads {
            q,
            mask,
            sizes,
            rank,
        })
    }

    /// The rows of an array of heads.
    fn head_rows<'a>(&'a self, x: &'a Array) -> HeadRows<'a> {
        let [batch, head, place, column] = four_strides(x);
        HeadRows {
            data: self.memory(x),
            start: x.start,
            batch,
            head,
            place,
            column,
        }
    }

    /// The sizes with the mask.
    fn masked<'a>(&'a self, heads: &'a Heads) -> Attention<'a> {
        Attention {
            mask: heads.mask.as_ref().map(|mask| HeadMask {
                data: MaskData::Add(self.memory(mask)),
                start: mask.start,
                strides: four_strides(mask),
            }),
            ..heads.sizes
        }
    }

    pub fn attention(&self, inputs: &[Id], how: Attending, pool: &mut Pool) -> Result<Register> {
        let heads = self.heads(&inputs[..3], inputs.get(3).copied(), how, pool)?;
        let Attention {
            batch,
            heads: count,
            kv_heads,
            queries,
            value_size,
            ..
        } = heads.sizes;
        let q = self.head_rows(&heads.q);
        let dims: Dims = SmallVec::from_slice(&[batch, queries, count, value_size]);
        let caches = self.cache(inputs[1]).zip(self.cache(inputs[2]));
        let made = match caches.filter(|(k, v)| !how.is_causal && k.dtype() == v.dtype()) {
            Some((k, v)) => filled(dims, pool, |out| {
                self.over_caches(self.masked(&heads), q, [k, v], out)
            })?,
            None => {
                let (k, v) = (self.four(inputs[1], pool)?, self.four(inputs[2], pool)?);
                let (k, v) = (self.head_rows(&k), self.head_rows(&v));
                let group = count.checked_div(kv_heads).unwrap_or(0);
                filled(dims, pool, |out| {
                    attention(self.level, self.masked(&heads), q, k, v, out)
                        .map_err(sizes_differ)?;
                    if how.is_causal {
                        spread_unseen(v, heads.all(), group, value_size, out);
                    }
                    Ok(())
                })?
            }
        };
        Ok(Register::Array(
            heads.narrowed(made.permuted(&[0, 2, 1, 3])),
        ))
    }

    /// The tensor of four dimensions that a register holds as a value: a cache that a program appended to.
    fn cache(&self, id: Id) -> Option<&candle_core::Tensor> {
        let Register::Value(value) = &self.registers[id] else {
            return None;
        };
        let tensor = value.downcast_ref::<Tensor>()?;
        let is_read = float_type(tensor.dtype().ok()?).is_some();
        let data = tensor.candle().ok()?;
        (is_read && data.rank() == 4).then_some(data)
    }

    /// Attention over keys and values where they are.
    fn over_caches(
        &self,
        sizes: Attention<'_>,
        q: HeadRows<'_>,
        [k, v]: [&candle_core::Tensor; 2],
        out: &mut [f32],
    ) -> Result<()> {
        fn rows<'a, T>(data: &'a [T], layout: &Layout) -> Result<HeadRows<'a, T>> {
            let [batch, head, place, column] = layout.stride()[..] else {
                return Err(Error::msg("a cache has four dimensions"));
            };
            Ok(HeadRows {
                data,
                start: layout.start_offset(),
                batch,
                head,
                place,
                column,
            })
        }
        let ((k, k_layout), (v, v_layout)) = (k.storage_and_layout(), v.storage_and_layout());
        macro_rules! over {
            ($k:expr, $v:expr) => {
                attention(
                    self.level,
                    sizes,
                    q,
                    rows($k, k_layout)?,
                    rows($v, v_layout)?,
                    out,
                )
                .map_err(sizes_differ)
            };
        }
        match (&*k, &*v) {
            (Storage::Cpu(CpuStorage::F32(k)), Storage::Cpu(CpuStorage::F32(v))) => over!(k, v),
            (Storage::Cpu(CpuStorage::F16(k)), Storage::Cpu(CpuStorage::F16(v))) => over!(k, v),
            (Storage::Cpu(CpuStorage::BF16(k)), Storage::Cpu(CpuStorage::BF16(v))) => over!(k, v),
            _ => Err(Error::msg("keys and values are of two types")),
        }
    }

    /// The gradients of the queries, the keys and the values.
    pub fn attention_back(
        &self,
        inputs: &[Id],
        how: Attending,
        pool: &mut Pool,
    ) -> Result<Register> {
        let heads = self.heads(&inputs[..3], inputs.get(4).copied(), how, pool)?;
        let grad = self.four(inputs[3], pool)?;
        let (keys, values) = (self.four(inputs[1], pool)?, self.four(inputs[2], pool)?);
        let (q, k, v) = (
            self.head_rows(&heads.q),
            self.head_rows(&keys),
            self.head_rows(&values),
        );
        let [batch, count, queries, _] = heads.all();
        if four_sizes(&grad) != [batch, count, queries, heads.sizes.value_size] {
            return Err(Error::msg("the gradient of attention has another shape"));
        }
        // All results in one memory.
        let shapes = [&heads.q, &keys, &values].map(|x| x.dims.clone());
        let lengths = shapes.each_ref().map(|dims| dims.iter().product::<usize>());
        let all: Dims = SmallVec::from_slice(&[lengths.iter().sum()]);
        let made = filled(all, pool, |out| {
            let (of_q, rest) = out.split_at_mut(lengths[0]);
            let (of_k, of_v) = rest.split_at_mut(lengths[1]);
            let out = AttentionGradients {
                q: of_q,
                k: of_k,
                v: of_v,
            };
            let grad = self.head_rows(&grad);
            attention_backward(self.level, self.masked(&heads), q, k, v, grad, out)
                .map_err(sizes_differ)
        })?;
        let mut start = 0;
        let parts = shapes.into_iter().zip(lengths).map(|(dims, length)| {
            let mut part = Array::of(made.memory.clone(), dims);
            part.start = start;
            start += length;
            heads.narrowed(part)
        });
        Ok(Register::Parts(parts.collect()))
    }

    /// What is added to scores.
    fn mask(&self, id: Id, mask: Mask, sizes: [usize; 4], pool: &mut Pool) -> Result<Array> {
        let is_truth = match &self.registers[id] {
            Register::Value(value) => value
                .downcast_ref::<Tensor>()
                .is_some_and(|tensor| tensor.dtype().is_ok_and(|dtype| dtype == DType::Bool)),
            _ => false,
        };
        let array = self.array(id, pool)?;
        let forbids = match (mask, is_truth) {
            (Mask::Forbidden, _) => true,
            (_, true) => false,
            (_, false) => {
                return array
                    .expanded(&sizes)
                    .ok_or_else(|| Error::msg("the mask does not fit"));
            }
        };
        let tape = added_to_scores(forbids);
        let operand = Operand {
            data: self.memory(&array),
            start: array.start,
            strides: &array.strides,
        };
        let made = filled(array.dims.clone(), pool, |out| {
            tape.run(self.level, &array.dims, &[operand], &mut [out])
                .map_err(sizes_differ)
        })?;
        made.expanded(&sizes)
            .ok_or_else(|| Error::msg("the mask does not fit"))
    }
}

/// Puts NaN where a query's weight of 0 meets a value that is no number, which the kernel does not
/// read: a key that the query does not see. `out` is `[batch, queries, heads, size]`.
fn spread_unseen(
    v: HeadRows<'_>,
    [batch, heads, queries, keys]: [usize; 4],
    group: usize,
    size: usize,
    out: &mut [f32],
) {
    for (b, key) in (0..batch).flat_map(|b| (1..keys).map(move |key| (b, key))) {
        for kv_head in 0..heads.checked_div(group).unwrap_or(0) {
            let row = v.start + b * v.batch + kv_head * v.head + key * v.place;
            let value = |at: usize| v.data[row + at * v.column];
            if (0..size).all(|at| value(at).is_finite()) {
                continue;
            }
            for query in 0..key.min(queries) {
                for head in kv_head * group..(kv_head + 1) * group {
                    let first = ((b * queries + query) * heads + head) * size;
                    let own = out[first..first + size].iter_mut().enumerate();
                    own.filter(|(at, _)| !value(*at).is_finite())
                        .for_each(|(_, x)| *x = f32::NAN);
                }
            }
        }
    }
}

/// Truth values as what is added to scores: minus infinity where they forbid, or do not allow.
fn added_to_scores(forbids: bool) -> &'static Tape {
    static TAPES: [OnceLock<Tape>; 2] = [OnceLock::new(), OnceLock::new()];
    TAPES[usize::from(forbids)].get_or_init(|| {
        let mut chain = Chain::new();
        let (x, zero) = (chain.input(), chain.constant(0.0));
        let infinite = chain.constant(f32::NEG_INFINITY);
        let added = match forbids {
            true => chain.select(x, infinite, zero),
            false => chain.select(x, zero, infinite),
        };
        chain.finish(&[added])
    })
}

fn four_sizes(x: &Array) -> [usize; 4] {
    [x.dims[0], x.dims[1], x.dims[2], x.dims[3]]
}

fn four_strides(x: &Array) -> [usize; 4] {
    [x.strides[0], x.strides[1], x.strides[2], x.strides[3]]
}
