//! Observers: notified of every node that is created, erased, replaced or changed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::graph::Graph;
use super::node::NodeRef;

/// Is notified of changes to a graph's nodes. A clone of the graph has no observers.
///
/// Undoing an edit ([`Graph::edit`], [`GraphModule::edit`](crate::GraphModule::edit)) notifies
/// observers of the reverse of each event, last event first, so that state derived from the events
/// stays consistent with the graph.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
/// use fx_core::operator;
/// use fx_core::ir::{Graph, GraphObserver, NodeRef};
///
/// #[derive(Default)]
/// struct Count(AtomicUsize);
/// impl GraphObserver for Count {
///     fn created(&self, _: NodeRef<'_>) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let count = Arc::new(Count::default());
/// let mut graph = Graph::new();
/// let observer = graph.observe(count.clone());
/// let x = graph.placeholder("x")?;
/// graph.unobserve(observer);
/// graph.output(x)?;
/// assert_eq!(count.0.load(Ordering::Relaxed), 1);
/// # Ok::<(), fx_core::Error>(())
/// ```
pub trait GraphObserver: Send + Sync {
    /// A node was added.
    fn created(&self, node: NodeRef<'_>) {
        let _ = node;
    }

    /// A node is about to be erased.
    fn erased(&self, node: NodeRef<'_>) {
        let _ = node;
    }

    /// A user of `old` is about to use `new` instead.
    fn replaced(&self, old: NodeRef<'_>, new: NodeRef<'_>, user: NodeRef<'_>) {
        let _ = (old, new, user);
    }

    /// A node's target, arguments, name, type, entry or position changed.
    fn changed(&self, node: NodeRef<'_>) {
        let _ = node;
    }
}

/// Identifies an observer of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObserverId(u64);

/// A graph's observers.
#[derive(Default)]
pub(super) struct Observers {
    list: Vec<(u64, Arc<dyn GraphObserver>)>,
}

impl Clone for Observers {
    fn clone(&self) -> Self {
        Observers::default()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.list.len())
    }
}

impl Graph {
    /// Adds an observer, which is notified from now on.
    pub fn observe(&mut self, observer: Arc<dyn GraphObserver>) -> ObserverId {
        // Unique in the process, so that another graph's observer is never mistaken for this one.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.observers.list.push((id, observer));
        ObserverId(id)
    }

    /// Removes an observer. Returns `false` if it was not registered.
    pub fn unobserve(&mut self, id: ObserverId) -> bool {
        let before = self.observers.list.len();
        self.observers.list.retain(|(known, _)| *known != id.0);
        self.observers.list.len() < before
    }

    #[inline]
    pub(super) fn has_observers(&self) -> bool {
        !self.observers.list.is_empty()
    }

    /// Notifies observers that a node has changed.
    #[inline]
    pub(super) fn tell_changed(&self, index: u32) {
        self.tell(|observer, graph| observer.changed(NodeRef::new(graph, index)));
    }

    #[inline]
    pub(super) fn tell(&self, event: impl Fn(&dyn GraphObserver, &Graph)) {
        for (_, observer) in &self.observers.list {
            event(&**observer, self);
        }
    }
}
