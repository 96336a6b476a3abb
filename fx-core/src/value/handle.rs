//! Small copyable names of recorded things: a node of a graph, a running trace, and a proxy, which is both.

use std::fmt;
use std::num::NonZeroU32;
use std::panic::Location;
use std::sync::OnceLock;

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

/// Tells a proxy's node's name, which only its trace knows; the tracing layer, above this one, sets it.
static NAME_OF: OnceLock<fn(Proxy) -> Option<String>> = OnceLock::new();

/// Sets what tells a proxy's name while its trace runs.
pub(crate) fn name_proxies_by(name_of: fn(Proxy) -> Option<String>) {
    // Set by the first trace; later ones set the same.
    let _ = NAME_OF.set(name_of);
}

/// Tells a running trace that a program asked something of a proxy, and what it was answered; set as `NAME_OF` is.
static NOTE_ANSWER: OnceLock<fn(Proxy, &'static str, &str, &'static Location<'static>)> =
    OnceLock::new();

/// Sets what puts answers into the reports of traces.
pub(crate) fn note_answers_by(note: fn(Proxy, &'static str, &str, &'static Location<'static>)) {
    let _ = NOTE_ANSWER.set(note);
}

impl Proxy {
    /// A program asked something of the value, and goes on with the answer: the trace's report says so.
    #[track_caller]
    pub(crate) fn note_answer(self, question: &'static str, answer: &str) {
        if let Some(note) = NOTE_ANSWER.get() {
            note(self, question, answer, Location::caller());
        }
    }
}

/// `Proxy(name)` while its trace runs on this thread, as in PyTorch; after it the node's id.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAME_OF.get().and_then(|name_of| name_of(*self)) {
            Some(name) => write!(f, "Proxy({name})"),
            None => write!(f, "Proxy({})", self.node),
        }
    }
}
