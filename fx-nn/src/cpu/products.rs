//! Products of matrices and attention on arrays.
//!
//! Invariant: operands are read where they are, whatever their strides.

use std::sync::OnceLock;

use fx_core::value::DType;
use fx_core::{Error, Result};
use fx_kernels::attention::{Attention, HeadRows, Mask as HeadMask, MaskData, OutOrder, attention};
use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};
use fx_kernels::pointwise::{Chain, Operand, Tape};
use smallvec::SmallVec;

use super::array::{Array, Dims, broadcast};
use super::draft::{Attending, Id, Mask};
use super::frame::{Reading, Register, array, filled, sizes_differ};
use super::memory::Pool;
use crate::Tensor;

impl Reading<'_> {
    pub fn matmul(&self, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let (a, b) = (self.array(inputs[0], pool)?, self.array(inputs[1], pool)?);
        let (is_row, is_column) = (a.dims.len() == 1, b.dims.len() == 1);
        let a = if is_row { a.with_one(0) } else { a };
        let b = if is_column { b.with_one(1) } else { b };
        let (Some(at), Some(bt)) = (a.dims.len().checked_sub(2), b.dims.len().checked_sub(2))
        else {
            return Err(Error::msg("a product of matrices needs dimensions"));
        };
        let (rows, depth, columns) = (a.dims[at], a.dims[at + 1], b.dims[bt + 1]);
        if b.dims[bt] != depth {
            return Err(Error::msg("the inner sizes of a product differ"));
        }
        let batch = broadcast([&a.dims[..at], &b.dims[..bt]])
            .ok_or_else(|| Error::msg("the batches of a product do not fit"))?;
        let expand = |x: &Array, rows: usize, columns: usize| {
            let mut dims = batch.clone();
            dims.extend([rows, columns]);
            x.expanded(&dims)
                .ok_or_else(|| Error::msg("the batches of a product do not fit"))
        };
        let (a, b) = (expand(&a, rows, depth)?, expand(&b, depth, columns)?);
        let at = batch.len();
        let mut dims = batch.clone();
        if !is_row {
            dims.push(rows);
        }
        if !is_column {
            dims.push(columns);
        }
        let left = Matrices {
            data: self.memory(&a),
            start: a.start,
            batch: &a.strides[..at],
            row: a.strides[at],
            column: a.strides[at + 1],
        };
        let right = Matrices {
            data: self.memory(&b),
            start: b.start,
            batch: &b.strides[..at],
            row: b.strides[at],
            column: b.strides[at + 1],
        };
        let sizes = Sizes {
            batch: &batch,
            rows,
            depth,
            columns,
        };
        array(dims, pool, |out| {
            matmul(self.level, sizes, left, right, 1.0, Finish::default(), out)
        })
    }

    pub fn attention(&self, inputs: &[Id], how: Attending, pool: &mut Pool) -> Result<Register> {
        let four = |id: Id, pool: &mut Pool| -> Result<Array> {
            let mut x = self.array(id, pool)?;
            while x.dims.len() < 4 {
                x = x.with_one(0);
            }
            match x.dims.len() {
                4 => Ok(x),
                _ => Err(Error::msg("attention is over four dimensions")),
            }
        };
        let rank = self.dims(inputs[0])?.len();
        if self.dims(inputs[1])?.len() != rank || self.dims(inputs[2])?.len() != rank {
            return Err(Error::msg(
                "queries, keys and values have as many dimensions",
            ));
        }
        let (q, k, v) = (
            four(inputs[0], pool)?,
            four(inputs[1], pool)?,
            four(inputs[2], pool)?,
        );
        let ([batch, heads, queries, size], [kb, kv_heads, keys, k_size]) =
            (four_sizes(&q), four_sizes(&k));
        let [vb, v_heads, v_keys, value_size] = four_sizes(&v);
        if (kb, vb, v_heads, v_keys, k_size) != (batch, batch, kv_heads, keys, size) {
            return Err(Error::msg("queries, keys and values do not fit"));
        }
        if size == 0 {
            return Err(Error::msg("queries have no elements"));
        }
        let mut kind = Attention::new(batch, heads, queries, size);
        kind.kv_heads = kv_heads;
        kind.keys = keys;
        kind.value_size = value_size;
        kind.causal = how.is_causal.then_some(0);
        kind.zero_if_masked = how.is_safe;
        kind.order = OutOrder::PlacesFirst;
        if let Some(scale) = how.scale {
            kind.scale = scale;
        }
        let sizes = [batch, heads, queries, keys];
        let mask_array = match how.mask {
            Mask::None => None,
            mask => Some(self.mask(inputs[3], mask, sizes, pool)?),
        };
        kind.mask = mask_array.as_ref().map(|mask| HeadMask {
            data: MaskData::Add(self.memory(mask)),
            start: mask.start,
            strides: four_strides(mask),
        });
        let heads_of = |x: &'_ Array| -> [usize; 4] { four_strides(x) };
        let rows = |strides: [usize; 4], data, start| HeadRows {
            data,
            start,
            batch: strides[0],
            head: strides[1],
            place: strides[2],
            column: strides[3],
        };
        let q = rows(heads_of(&q), self.memory(&q), q.start);
        let k = rows(heads_of(&k), self.memory(&k), k.start);
        let v = rows(heads_of(&v), self.memory(&v), v.start);
        let group = heads.checked_div(kv_heads).unwrap_or(0);
        let dims: Dims = SmallVec::from_slice(&[batch, queries, heads, value_size]);
        let made = filled(dims, pool, |out| {
            attention(self.level, kind, q, k, v, out).map_err(sizes_differ)?;
            if how.is_causal {
                spread_unseen(v, sizes, group, value_size, out);
            }
            Ok(())
        })?;
        let mut made = made.permuted(&[0, 2, 1, 3]);
        while made.dims.len() > rank {
            made = made.without(0);
        }
        Ok(Register::Array(made))
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
