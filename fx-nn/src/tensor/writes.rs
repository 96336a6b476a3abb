//! `Writes`: whether the elements of tensors were written in place since it looked.
//!
//! Invariant: a write through this crate counts before it returns. One that goes around it, by
//! candle's `Var::set`, is not seen.

use std::sync::atomic::{AtomicU64, Ordering};

/// Writes so far: a look that finds the same number has nothing else to read.
static ALL: AtomicU64 = AtomicU64::new(0);

/// Writes so far by the place of their memory. Tensors that share a count only look written too
/// often.
static COUNTS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

fn count_of(data: &candle_core::Tensor) -> &'static AtomicU64 {
    let (storage, _) = data.storage_and_layout();
    let address = std::ptr::from_ref(&*storage).addr();
    // Storages are allocated apart, so that the low bits say little.
    &COUNTS[(address >> 5).wrapping_mul(0x9E37_79B1) % COUNTS.len()]
}

/// Counts a write into a tensor's memory. Every function that writes in place calls it, after it
/// wrote.
pub(crate) fn written(data: &candle_core::Tensor) {
    count_of(data).fetch_add(1, Ordering::Release);
    ALL.fetch_add(1, Ordering::Release);
}

/// Tensors that are watched: for backends that keep copies of weights. Only writes by candle's own
/// `Var::set` are not noticed.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::tensor::Writes;
/// let mut x = Tensor::zeros(2)?;
/// let mut writes = Writes::watch([x.candle()?]);
/// assert!(!writes.any());
/// x.copy_from(&Tensor::ones(2)?)?;
/// assert!(writes.any());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Writes {
    all: u64,
    counts: Vec<(&'static AtomicU64, u64)>,
}

impl Writes {
    /// Watches tensors from now on.
    pub fn watch<'t>(tensors: impl IntoIterator<Item = &'t candle_core::Tensor>) -> Self {
        let all = ALL.load(Ordering::Acquire);
        let counts = tensors.into_iter().map(count_of);
        Writes {
            all,
            counts: counts
                .map(|count| (count, count.load(Ordering::Acquire)))
                .collect(),
        }
    }

    /// Watches other tensors as well from now on.
    pub fn watch_too<'t>(&mut self, tensors: impl IntoIterator<Item = &'t candle_core::Tensor>) {
        let others = Writes::watch(tensors);
        self.counts.extend(others.counts);
    }

    /// Whether one of them was written since they are watched.
    pub fn any(&mut self) -> bool {
        let all = ALL.load(Ordering::Acquire);
        if all == self.all {
            return false;
        }
        let is_same = |(count, seen): &(&AtomicU64, u64)| count.load(Ordering::Acquire) == *seen;
        let any = !self.counts.iter().all(is_same);
        if !any {
            self.all = all;
        }
        any
    }
}
