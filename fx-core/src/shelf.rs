//! Where something waits that was replaced while an edit of it is open.
//!
//! Invariant: at most one thing waits, and whoever takes it has it alone.

use std::sync::{Mutex, PoisonError};

/// Keeps what was replaced during an edit, when another one was assigned over it.
#[derive(Debug)]
pub(crate) struct Shelf<T>(Mutex<Option<T>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf(Mutex::default())
    }
}

impl<T> Shelf<T> {
    pub fn put(&self, kept: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Calls `look` with what is kept, if anything is.
    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(look)
    }
}
