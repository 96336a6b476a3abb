//! `Around`: what a graph of several compiled parts runs in.

/// What a graph of several compiled parts runs in: on a thread of a pool, for example.
pub trait Around: Send + Sync {
    /// Runs the graph, once.
    fn run(&self, graph: &mut (dyn FnMut() + Send));
}
