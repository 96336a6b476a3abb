//! Tensors that are the front part of a longer buffer, so that more can be appended to them where they are.
//!
//! Invariant: elements are written before a tensor shows them, and never again: whoever appends takes the indices behind a
//! tensor first, and copies it where another has taken them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{CpuStorage, InplaceOp1, Layout};
use fx_core::{Error, Result};
use fx_kernels::convert::Element;

use crate::error::Fx;

/// The indices of a block: buffers have room for a number of whole ones.
const BLOCK: usize = 64;

/// The buffer of tensors that grow along a dim.
#[derive(Debug)]
pub(super) struct Room {
    /// All of it: contiguous.
    buffer: candle_core::Tensor,
    dim: usize,
    /// The indices along the dim that are written, or will be.
    taken: AtomicUsize,
}

/// Floats in order that are appended along a dim.
pub(crate) struct Rows<'a> {
    pub floats: &'a [f32],
    pub dims: &'a [usize],
    pub dim: usize,
}

impl Room {
    /// A buffer with the elements of a tensor, and `more` indices behind them that are taken: with room for a quarter again,
    /// so that a tensor that grows and grows is copied a few times only.
    fn of(front: &candle_core::Tensor, dim: usize, more: usize) -> Result<Self> {
        let mut dims = front.dims().to_vec();
        let long = || Error::msg("a tensor would be too long");
        let taken = dims[dim].checked_add(more).ok_or_else(long)?;
        let enough = taken.checked_add((taken / 4).max(1));
        let enough = enough.and_then(|enough| enough.checked_next_multiple_of(BLOCK));
        dims[dim] = enough.ok_or_else(long)?;
        crate::room::of("a tensor that grows", &dims, front.dtype()).map_err(Error::other)?;
        let buffer = candle_core::Tensor::zeros(&dims[..], front.dtype(), front.device()).fx()?;
        if front.elem_count() > 0 {
            buffer.slice_set(&front.contiguous().fx()?, dim, 0).fx()?;
        }
        Ok(Room {
            buffer,
            dim,
            taken: AtomicUsize::new(taken),
        })
    }

    /// Takes the `count` indices from `start` on, if nobody has.
    fn take(&self, start: usize, count: usize) -> bool {
        let Some(end) = start.checked_add(count) else {
            return false;
        };
        let room = self.buffer.dims()[self.dim];
        let exchange = |end| {
            let taken = &self.taken;
            taken.compare_exchange(start, end, Ordering::Relaxed, Ordering::Relaxed)
        };
        end <= room && exchange(end).is_ok()
    }
}

/// A tensor with rows behind it along a dim, in its own type, as `cat` gives it, and its buffer. They are written behind it
/// where it is the front part of a buffer with room that nobody has appended to; else it is copied into such a buffer. Nobody
/// may read the tensor's storage on this thread meanwhile.
///
/// # Errors
/// Returns an error if the sizes do not fit, or the type is not floating point of at most 32 bits.
pub(super) fn appended(
    data: &candle_core::Tensor,
    room: Option<&Arc<Room>>,
    rows: &Rows<'_>,
) -> Result<(candle_core::Tensor, Arc<Room>)> {
    let (dims, dim) = (data.dims(), rows.dim);
    let fits = |at: usize| at == dim || dims[at] == rows.dims[at];
    if dims.len() != rows.dims.len() || dim >= dims.len() || !(0..dims.len()).all(fits) {
        return Err(Error::msg("the sizes of what is concatenated differ"));
    }
    let (start, count) = (dims[dim], rows.dims[dim]);
    let room = match room {
        Some(room) if room.dim == dim && room.take(start, count) => Arc::clone(room),
        _ => Arc::new(Room::of(data, dim, count)?),
    };
    room.buffer.inplace_op1(&Write { rows, start }).fx()?;
    let front = room.buffer.narrow(dim, 0, start + count).fx()?;
    Ok((front, room))
}

/// Writes rows into a buffer from an index on.
struct Write<'a> {
    rows: &'a Rows<'a>,
    start: usize,
}

impl Write<'_> {
    fn into<T: Element>(&self, all: &mut [T], layout: &Layout) {
        let Rows { floats, dims, dim } = *self.rows;
        let inner: usize = dims[dim + 1..].iter().product();
        let (room, rows) = (layout.dims()[dim] * inner, dims[dim] * inner);
        if room == 0 || rows == 0 {
            return;
        }
        let all = &mut all[layout.start_offset()..];
        for (all, rows) in all.chunks_exact_mut(room).zip(floats.chunks_exact(rows)) {
            T::narrow(rows, &mut all[self.start * inner..][..rows.len()]);
        }
    }
}

impl InplaceOp1 for Write<'_> {
    fn name(&self) -> &'static str {
        "append"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        match storage {
            CpuStorage::F32(all) => self.into(all, layout),
            CpuStorage::F16(all) => self.into(all, layout),
            CpuStorage::BF16(all) => self.into(all, layout),
            _ => candle_core::bail!("append: only floats of at most 32 bits are appended"),
        }
        Ok(())
    }
}
