//! Scopes of a thread: how many of one kind it is in.
//!
//! Invariant: a scope is left when its body ends, also on unwinding.

use std::cell::Cell;
use std::thread::LocalKey;

/// How many scopes of a kind the thread is in.
pub(crate) type Depth = LocalKey<Cell<usize>>;

/// Runs `body` in one more scope.
pub(crate) fn within<R>(depth: &'static Depth, body: impl FnOnce() -> R) -> R {
    struct Leave(&'static Depth);
    impl Drop for Leave {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    depth.set(depth.get() + 1);
    let _leave = Leave(depth);
    body()
}
