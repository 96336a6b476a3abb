//! Small copyable handles: a node of a graph, a running trace, and a proxy, which combines both.

use std::fmt;
use std::num::NonZeroU32;
use std::panic::Location;
use std::sync::OnceLock;

use super::fake_number::FakeNumber;

/// Identifies a node of one graph: an index and a process-unique stamp, so that ids of erased nodes
/// and of other graphs are distinguished from live ones.
///
/// A clone of a graph keeps its ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub(crate) index: u32,
    pub(crate) stamp: NonZeroU32,
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Stamps count down.
        write!(f, "#{}@{}", self.index, u32::MAX - self.stamp.get() + 1)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Identifies one run of a tracer.
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

/// The trace that no trace is: its proxies are numbers without a value.
const NO_TRACE: TraceId = TraceId(u32::MAX);

impl Proxy {
    /// A number that is no node of a trace.
    pub(crate) fn of_fake(number: FakeNumber) -> Self {
        let (index, stamp) = (number.index(), NonZeroU32::MAX);
        Proxy {
            node: NodeId { index, stamp },
            trace: NO_TRACE,
        }
    }

    /// Whether it is a number of fake tensors, such as a size with a name, and no node of a trace.
    pub fn is_fake(self) -> bool {
        self.trace == NO_TRACE
    }

    /// The number that it is, unless it is a node of a trace.
    pub(crate) fn fake_number(self) -> Option<FakeNumber> {
        match self.is_fake() {
            true => FakeNumber::at(self.node.index),
            false => None,
        }
    }
}

/// Looks up the name of a proxy's node, which only its trace knows; set by the tracing layer above.
static NAME_OF: OnceLock<fn(Proxy) -> Option<String>> = OnceLock::new();

/// Sets the function that looks up a proxy's name while its trace runs.
pub(crate) fn name_proxies_by(name_of: fn(Proxy) -> Option<String>) {
    // Set by the first trace; later ones set the same.
    let _ = NAME_OF.set(name_of);
}

/// Reports to a running trace a question that a program asked about a proxy, and the answer; set
/// like `NAME_OF`.
static NOTE_ANSWER: OnceLock<fn(Proxy, &'static str, &str, &'static Location<'static>)> =
    OnceLock::new();

/// Sets the function that adds answers to the reports of traces.
pub(crate) fn note_answers_by(note: fn(Proxy, &'static str, &str, &'static Location<'static>)) {
    let _ = NOTE_ANSWER.set(note);
}

/// Finds the number that a proxy is, if its trace knows; set like `NAME_OF`.
static NUMBER_OF: OnceLock<fn(Proxy, &'static Location<'static>) -> Option<i64>> = OnceLock::new();

/// Sets the function that finds the numbers of proxies.
pub(crate) fn number_proxies_by(number_of: fn(Proxy, &'static Location<'static>) -> Option<i64>) {
    let _ = NUMBER_OF.set(number_of);
}

impl Proxy {
    /// The number that it is, if its trace knows.
    #[track_caller]
    pub(crate) fn known_number(self) -> Option<i64> {
        NUMBER_OF
            .get()
            .and_then(|number_of| number_of(self, Location::caller()))
    }

    /// Records in the trace's report that a program asked about the value and continued with the
    /// answer.
    #[track_caller]
    pub(crate) fn note_answer(self, question: &'static str, answer: &str) {
        if let Some(note) = NOTE_ANSWER.get() {
            note(self, question, answer, Location::caller());
        }
    }
}

/// `Proxy(name)` while its trace runs on this thread, as in PyTorch; afterwards the node's id.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAME_OF.get().and_then(|name_of| name_of(*self)) {
            Some(name) => write!(f, "Proxy({name})"),
            None if self.is_fake() => match self.fake_number() {
                Some(number) => number.fmt(f),
                None => f.write_str("a number"),
            },
            None => write!(f, "Proxy({})", self.node),
        }
    }
}
