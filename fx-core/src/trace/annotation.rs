//! `annotate`: entries for the nodes that are recorded while a closure runs.
//!
//! Invariant: an entry goes to nodes of traces that ran when its scope began, and to none after the
//! scope ended, also on unwinding.

use std::rc::Rc;

use super::context::TraceContext;
use super::scope::{Active, running};
use crate::error::Result;
use crate::ir::meta::{Entries, Entry, Meta};
use crate::value::handle::NodeId;

/// Runs `body`; every node that is recorded meanwhile gets `entry`, as
/// [`NodeRef::meta`](crate::ir::NodeRef::meta) reads it. What called functions and modules record
/// is included.
///
/// Of nested scopes with the same type of entry, the innermost counts; entries of different types
/// add up. An entry that a [`Tracer`](crate::trace::Tracer) sets itself comes last. A trace that
/// begins in `body` is not affected, and outside of a trace only `body` runs.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::{Meta, MetaPolicy};
/// use fx_core::trace::annotate;
/// #[derive(Debug, PartialEq)]
/// struct Stage(u32);
/// impl Meta for Stage {
///     const ON_COPY: MetaPolicy = MetaPolicy::Copy;
///     const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
/// }
///
/// let gm = symbolic_trace(traced!(|x: Float| {
///     let doubled = annotate(Stage(1), || x * 2.0)?;
///     doubled + 1.0
/// }))?;
/// let stage = |name| gm.graph().find_name(name).and_then(|node| node.meta::<Stage>());
/// assert_eq!((stage("mul"), stage("add")), (Some(&Stage(1)), None));
/// # Ok::<(), Error>(())
/// ```
pub fn annotate<M: Meta, R>(entry: M, body: impl FnOnce() -> R) -> R {
    let _scope = Annotated::begin(&Entry::of(entry));
    body()
}

/// The traces of a scope, each with the entries that it had before and gets back when this is
/// dropped.
struct Annotated(Vec<(Rc<Active>, Entries)>);

impl Annotated {
    fn begin(entry: &Entry) -> Self {
        let begun = running().into_iter().map(|active| {
            let mut entries = active.context.annotations.borrow().clone();
            entries.put(entry.clone());
            let former = active.context.annotations.replace(entries);
            (active, former)
        });
        Annotated(begun.collect())
    }
}

impl Drop for Annotated {
    fn drop(&mut self) {
        for (active, former) in self.0.drain(..) {
            // Dropped outside the borrow: an entry's own drop may record.
            drop(active.context.annotations.replace(former));
        }
    }
}

impl TraceContext {
    /// Gives a new node the entries of the scopes around it.
    #[inline]
    pub(super) fn annotated(&self, node: NodeId) -> Result<NodeId> {
        let entries = self.annotations.borrow();
        if !entries.is_empty() {
            self.graph_mut()?.node_mut(node)?.put_entries(&entries);
        }
        Ok(node)
    }
}
