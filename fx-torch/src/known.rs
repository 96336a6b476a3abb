//! What the file says of symbolic tensors of branches and loops, of which a trace infers nothing before they end.
//!
//! Invariant: what is known is of the trace that runs; it is forgotten with it.

use std::cell::RefCell;

use fx_nn::value::{DType, NodeId, Proxy};
use rustc_hash::FxHashMap;

/// What is known of a tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub rank: usize,
    pub dtype: Option<DType>,
}

thread_local! {
    static KNOWN: RefCell<FxHashMap<NodeId, Known>> = RefCell::default();
}

/// Forgets everything, at the start and at the end of a trace.
pub(crate) struct Scope(());

impl Scope {
    /// Begins a trace.
    pub fn new() -> Self {
        forget();
        Scope(())
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        forget();
    }
}

fn forget() {
    KNOWN.with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            known.clear();
        }
    });
}

/// Keeps what is known of a tensor.
pub(crate) fn note(proxy: Proxy, known: Known) {
    KNOWN.with(|all| {
        if let Ok(mut all) = all.try_borrow_mut() {
            all.insert(proxy.node(), known);
        }
    });
}

/// What is known of a tensor.
pub(crate) fn of(proxy: Proxy) -> Option<Known> {
    KNOWN.with(|all| all.try_borrow().ok()?.get(&proxy.node()).copied())
}
