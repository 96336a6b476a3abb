//! `PassRecord`: what a pass did to a graph, told by name, and what collects it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::ir::graph::Graph;
use crate::ir::identity::is_same_call;
use crate::ir::node::NodeRef;
use crate::ir::observe::GraphObserver;
use crate::value::handle::NodeId;

/// What a pass did: made by [`GraphModule::apply`](crate::GraphModule::apply).
#[derive(Debug, Clone)]
pub struct PassRecord {
    /// The pass's name.
    pub pass: String,
    /// Whether it changed anything: it says so, or the graph is another.
    pub changed: bool,
    /// How long it took, without checks.
    pub time: Duration,
    /// Nodes that there were.
    pub nodes_before: usize,
    /// Nodes that there are.
    pub nodes_after: usize,
    /// The names of nodes that are new.
    pub created: Vec<String>,
    /// The names of nodes that are gone.
    pub erased: Vec<String>,
    /// Which nodes gave way to which, by name.
    pub replaced: Vec<(String, String)>,
    /// The names of nodes that were there and have another target or other arguments now, beyond inputs that were
    /// replaced.
    pub edited: Vec<String>,
}

impl fmt::Display for PassRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} -> {} nodes, {} created, {} replaced, {} erased, {} edited, {:.3} ms",
            self.pass,
            self.nodes_before,
            self.nodes_after,
            self.created.len(),
            self.replaced.len(),
            self.erased.len(),
            self.edited.len(),
            self.time.as_secs_f64() * 1e3
        )
    }
}

type Names<K> = IndexMap<K, String, FxBuildHasher>;

#[derive(Default)]
struct Seen {
    created: Names<NodeId>,
    erased: Names<NodeId>,
    replaced: IndexMap<(NodeId, NodeId), (String, String), FxBuildHasher>,
}

/// Collects what happens to a graph.
#[derive(Default)]
pub(super) struct Changes(Mutex<Seen>);

impl Changes {
    fn with(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn into_record(self: Arc<Self>, before: &Graph, after: &Graph, record: &mut PassRecord) {
        self.with(|seen| {
            let gave_way: FxHashSet<NodeId> = seen.replaced.keys().map(|(old, _)| *old).collect();
            let same_input = |old, new| old == new || gave_way.contains(&old);
            let edited = after.nodes().filter(|node| {
                let old = before.node(node.id());
                old.is_ok_and(|old| !is_same_call(old, *node, &same_input))
            });
            record.edited = edited.map(|node| node.name().to_string()).collect();
            // What was done and taken back again is not told.
            let is_alive = |id: &NodeId| after.node(*id).is_ok();
            seen.created.retain(|id, _| is_alive(id));
            seen.erased.retain(|id, _| !is_alive(id));
            seen.replaced.retain(|(_, new), _| is_alive(new));
            record.created = std::mem::take(&mut seen.created).into_values().collect();
            record.erased = std::mem::take(&mut seen.erased).into_values().collect();
            record.replaced = std::mem::take(&mut seen.replaced).into_values().collect();
        });
    }

    /// What is different by name, where a pass put another graph in the place of the one that there was; gives the new
    /// nodes.
    pub fn between(before: &Graph, after: &Graph, record: &mut PassRecord) -> Vec<NodeId> {
        let names = |graph: &Graph| -> FxHashSet<String> {
            graph.nodes().map(|node| node.name().to_string()).collect()
        };
        let (old, new) = (names(before), names(after));
        let missing = |graph: &Graph, others: &FxHashSet<String>| -> Vec<(NodeId, String)> {
            let all = graph
                .nodes()
                .map(|node| (node.id(), node.name().to_string()));
            all.filter(|(_, name)| !others.contains(name)).collect()
        };
        record.erased = missing(before, &new)
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        let (ids, created) = missing(after, &old).into_iter().unzip();
        record.created = created;
        ids
    }
}

impl GraphObserver for Changes {
    fn created(&self, node: NodeRef<'_>) {
        self.with(|seen| {
            seen.created.insert(node.id(), node.name().to_string());
        });
    }

    fn erased(&self, node: NodeRef<'_>) {
        self.with(|seen| {
            // What a pass made for itself is not told.
            if seen.created.swap_remove(&node.id()).is_none() {
                seen.erased.insert(node.id(), node.name().to_string());
            }
        });
    }

    fn replaced(&self, old: NodeRef<'_>, new: NodeRef<'_>, _: NodeRef<'_>) {
        self.with(|seen| {
            let pair = seen.replaced.entry((old.id(), new.id()));
            pair.or_insert_with(|| (old.name().to_string(), new.name().to_string()));
        });
    }
}
