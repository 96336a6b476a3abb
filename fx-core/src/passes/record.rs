//! `PassRecord`: what a pass did to a graph, told by name.

use std::fmt;
use std::time::Duration;

/// What a pass did: made by [`GraphModule::apply`](crate::GraphModule::apply).
#[derive(Debug, Clone)]
#[non_exhaustive]
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
