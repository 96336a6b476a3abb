//! Scratch memory that a thread keeps from run to run.
//!
//! Invariant: a loan inside of a loan gets memory of its own, so that a thread that waits for others
//! may take up their work.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Buffer;

/// The most floats that a loan leaves behind: 8 MiB.
pub(crate) const KEPT: usize = 2 << 20;

/// The most buffers, and the most lists, that a thread keeps.
const SPARE: usize = 4;

/// The floats of all buffers that are lent or kept.
static FLOATS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static BUFFERS: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
    static PARTS: RefCell<Vec<Vec<&'static mut [f32]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that is counted as long as it is there.
#[derive(Default)]
struct Counted(Buffer);

impl Counted {
    fn new(len: usize) -> Counted {
        FLOATS.fetch_add(len, Ordering::Relaxed);
        Counted(Buffer::zeros(len))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        FLOATS.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// The bytes of scratch memory that the threads of the process use, and keep for the next kernel: at most 32 MiB each
/// while none runs.
///
/// ```
/// assert_eq!(fx_kernels::scratch_bytes() % 4, 0);
/// ```
pub fn scratch_bytes() -> u64 {
    (FLOATS.load(Ordering::Relaxed) * size_of::<f32>()) as u64
}

/// Lends `len` floats of any content, at the start of a line of the cache.
///
/// Fresh memory costs a page fault every 4 KiB, more than many kernels take.
pub(crate) fn lend<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    lend_buffer(len, |buffer| f(&mut buffer[..len]))
}

/// Lends a buffer of `len` floats or more, which has to be of its length afterwards.
pub(crate) fn lend_buffer<R>(len: usize, f: impl FnOnce(&mut Buffer) -> R) -> R {
    let spare = BUFFERS.with_borrow_mut(|buffers| {
        // The smallest that is large enough, or the largest, which is given up for a larger one.
        let choice = buffers.iter().enumerate().min_by_key(|(_, buffer)| {
            let size = buffer.0.len();
            (size < len, size.abs_diff(len))
        });
        let choice = choice.map(|(at, _)| at);
        choice.map(|at| buffers.swap_remove(at))
    });
    let mut buffer = spare.unwrap_or_default();
    if buffer.0.len() < len {
        drop(buffer);
        buffer = Counted::new(len);
    }
    let result = f(&mut buffer.0);
    if buffer.0.len() <= KEPT {
        BUFFERS.with_borrow_mut(|buffers| {
            if buffers.len() < SPARE {
                buffers.push(buffer);
            }
        });
    }
    result
}

/// Lends a list of `len` parts of a result, empty ones at first.
pub(crate) fn lend_parts<'o, R>(len: usize, f: impl FnOnce(&mut [&'o mut [f32]]) -> R) -> R {
    let mut parts: Vec<&'o mut [f32]> = PARTS.with_borrow_mut(Vec::pop).unwrap_or_default();
    parts.resize_with(len, Default::default);
    let result = f(&mut parts);
    parts.clear();
    // An empty list is one of parts of any lifetime; collected in place, it keeps its memory.
    let parts = parts.into_iter().map(|_| Default::default()).collect();
    PARTS.with_borrow_mut(|lists| {
        if lists.len() < SPARE {
            lists.push(parts);
        }
    });
    result
}
