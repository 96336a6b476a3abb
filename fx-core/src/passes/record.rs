//! `PassRecord`: what a pass did to a graph, by name.

use std::fmt;
use std::time::Duration;

/// What a pass did: made by [`GraphModule::apply`](crate::GraphModule::apply).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PassRecord {
    /// The pass's name.
    pub pass: String,
    /// Whether it changed anything: it reported so, or the graph differs.
    pub changed: bool,
    /// How long it took, without checks.
    pub time: Duration,
    /// The number of nodes before.
    pub nodes_before: usize,
    /// The number of nodes after.
    pub nodes_after: usize,
    /// The names of new nodes.
    pub created: Vec<String>,
    /// The names of erased nodes.
    pub erased: Vec<String>,
    /// Replaced nodes with their replacements, by name.
    pub replaced: Vec<(String, String)>,
    /// The names of remaining nodes whose target or arguments changed, beyond inputs that were
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
