//! Long chains of operations under a gradient: links that let a chain be dropped with a bounded
//! stack.
//!
//! A candle tensor that gradients run through holds its operands, and drops them inside its own
//! drop: a chain takes a stack frame per operation. Invariant: along a chain of results, at random
//! about one in `SPACING` is followed by a link, which hands its input to a list when it is
//! dropped instead of dropping it deeper in the stack.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

/// The mean number of results between two links.
const SPACING: usize = 64;

/// The number of existing links, which bounds the size of the graphs that hold them.
static LINKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The state of the random sequence that places links, so that no pattern of a program misses
    /// them all.
    static STATE: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
    /// Inputs of dropped links, and whether they are being dropped.
    static DROPPED: RefCell<(Vec<Tensor>, bool)> = const { RefCell::new((Vec::new(), false)) };
}

/// The identity, which holds its input itself.
struct Link {
    input: Option<Tensor>,
}

impl Link {
    fn new(input: &Tensor) -> Self {
        LINKS.fetch_add(1, Ordering::Relaxed);
        Link {
            input: Some(input.clone()),
        }
    }
}

impl CustomOp1 for Link {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let from = layout.start_offset();
        let all = from..from + layout.shape().elem_count();
        let copy = match storage {
            CpuStorage::BF16(data) => CpuStorage::BF16(data[all].to_vec()),
            CpuStorage::F16(data) => CpuStorage::F16(data[all].to_vec()),
            CpuStorage::F32(data) => CpuStorage::F32(data[all].to_vec()),
            CpuStorage::F64(data) => CpuStorage::F64(data[all].to_vec()),
            _ => candle_core::bail!("a link is between floats"),
        };
        Ok((copy, layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(gradient.clone()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        LINKS.fetch_sub(1, Ordering::Relaxed);
        let Some(input) = self.input.take() else {
            return;
        };
        // After the thread's list is destroyed, the input is dropped here.
        let first = DROPPED.try_with(|dropped| {
            let (list, runs) = &mut *dropped.borrow_mut();
            list.push(input);
            !std::mem::replace(runs, true)
        });
        if first != Ok(true) {
            return;
        }
        let next = || {
            DROPPED.try_with(|dropped| {
                let (list, runs) = &mut *dropped.borrow_mut();
                let next = list.pop();
                *runs = next.is_some();
                next
            })
        };
        while let Ok(Some(input)) = next() {
            drop(input);
        }
    }
}

/// A result, at random followed by a link if gradients run through it.
#[inline]
pub fn linked(data: Tensor) -> Tensor {
    if data.track_op() && !data.is_variable() {
        maybe_linked(data)
    } else {
        data
    }
}

/// About how many results exist that gradients run through: no graph is larger.
pub fn results() -> usize {
    LINKS.load(Ordering::Relaxed).saturating_mul(SPACING)
}

#[inline(never)]
fn maybe_linked(data: Tensor) -> Tensor {
    let drawn = STATE.with(|state| {
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x
    });
    // A link copies its input, which for a view may be far more than it holds.
    if !drawn.is_multiple_of(SPACING as u64) || !data.dtype().is_float() || !data.is_contiguous() {
        return data;
    }
    data.apply_op1(Link::new(&data)).unwrap_or(data)
}
