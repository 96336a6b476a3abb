//! Small copyable names of recorded things: a node of a graph, a running trace, and a proxy, which is both.

use std::fmt;
use std::num::NonZeroU32;

/// Names a node of one graph: an index and a process-unique stamp, so that an erased node's id and
/// another graph's are told apart from a live one.
///
/// A clone of a graph keeps its ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub(crate) index: u32,
    pub(crate) stamp: NonZeroU32,
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}@{}", self.index, self.stamp)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Names one run of a tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub(crate) u32);

/// A symbolic value: the result of a node of a running trace.
///
/// Operations on it are recorded in that trace's graph. It is a handle: copying it records nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proxy {
    pub(crate) node: NodeId,
    pub(crate) trace: TraceId,
}

impl Proxy {
    /// The node that computes the value.
    pub fn node(self) -> NodeId {
        self.node
    }

    /// The trace that recorded it.
    pub fn trace_id(self) -> TraceId {
        self.trace
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.node)
    }
}
