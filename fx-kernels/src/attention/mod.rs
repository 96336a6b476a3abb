//! Scaled dot-product attention: how the work is cut into heads and blocks of queries. The matrix of scores is never in memory.

mod backward;
mod blocks;
mod dots;
mod few;
mod operands;

use rayon::prelude::*;

pub use self::backward::{AttentionGradients, attention_backward};
pub use self::operands::{Attention, HeadRows, Mask, MaskData, OutOrder};
use self::operands::{Operands, Task};
use crate::Level;
use crate::convert::Element;
use crate::error::{SizeError, check};
use crate::matrix::tile::even;
use crate::scratch::{lend, lend_parts};

/// The multiply-adds below which the calling thread does everything.
const SERIAL: usize = 2 << 20;

/// `softmax(scale * q * k^T + mask) * v` for each head.
///
/// Keys and values in 16 bits are read as floats, a part at a time: of a few queries, for all heads that share them. Beyond
/// the result it needs less than 2 MB for each thread, and the scores of a few queries, or the floats of the keys and values
/// of a head that are in 16 bits.
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
pub fn attention<T: Element>(
    level: Level,
    sizes: Attention<'_>,
    q: HeadRows<'_>,
    k: HeadRows<'_, T>,
    v: HeadRows<'_, T>,
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
    let group = sizes.check(q, k, v)?;
    check(
        "the result",
        batch * heads * queries * value_size,
        out.len(),
    )?;
    if out.is_empty() {
        return Ok(());
    }
    let is_serial = batch * heads * queries * keys * (size + value_size) < SERIAL;
    let run = |task: Task<'_, '_>| {
        let of = [task.batch, task.head / group];
        let (of_k, of_v) = (k.space(keys, size), v.space(keys, value_size));
        lend(of_k + of_v, |space| {
            let (of_k, of_v) = space.split_at_mut(of_k);
            let operands = Operands {
                q: q.rows(task.batch, task.head, size),
                k: k.strided(of, [keys, size], of_k),
                v: v.strided(of, [keys, value_size], of_v),
            };
            blocks::run(level, &sizes, operands, task);
        });
    };
    // A task has up to 256 queries of a head, fewer where there are few heads.
    let mut most = 256;
    while most > 64 && batch * heads * queries.div_ceil(most) < 16 {
        most /= 2;
    }
    let is_few = queries <= few::FEW && k.column == 1 && v.column == 1 && q.column == 1;
    lend_parts(batch * heads * queries, |parts| {
        for (i, row) in out.chunks_mut(value_size).enumerate() {
            let (b, rest) = (i / (heads * queries), i % (heads * queries));
            let (head, query) = match sizes.order {
                OutOrder::HeadsFirst => (rest / queries, rest % queries),
                OutOrder::PlacesFirst => (rest % heads, rest / heads),
            };
            parts[(b * heads + head) * queries + query] = row;
        }
        if is_few {
            let rows = group * queries;
            // Where there are more threads than heads of keys, some share a head.
            let tasks = rayon::current_num_threads().div_ceil(batch * kv_heads);
            let most = if is_serial {
                rows
            } else {
                rows.div_ceil(tasks)
            };
            let tasks = parts.chunks_mut(rows).enumerate().flat_map(|(i, out)| {
                let of = [i / kv_heads, i % kv_heads];
                let parts = out.chunks_mut(most).enumerate();
                parts.map(move |(part, out)| (of, part * most, out))
            });
            let run = |(of, first, out): ([usize; 2], usize, &mut [&mut [f32]])| {
                few::run(level, &sizes, (q, k, v), of, first, out);
            };
            match is_serial {
                true => tasks.for_each(run),
                false => tasks.collect::<Vec<_>>().into_par_iter().for_each(run),
            }
            return;
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
        match is_serial {
            true => tasks.into_iter().for_each(run),
            false => tasks.into_par_iter().for_each(run),
        }
    });
    Ok(())
}
