//! The traces running on this thread: a stack that only trace scopes push and pop, also on
//! unwinding.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::ThreadId;

use super::context::TraceContext;
use super::report::Frozen;
use super::tracer::Tracer;
use crate::error::{Error, ErrorKind};
use crate::value::handle::{Proxy, TraceId, name_proxies_by, note_answers_by, number_proxies_by};

/// A running trace.
pub(crate) struct Active {
    pub tracer: Rc<dyn Tracer>,
    pub context: TraceContext,
}

thread_local! {
    /// How many traces and modes see calls here: one number, because every call reads it.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// How many modes see calls here.
    static MODES: Cell<usize> = const { Cell::new(0) };
    static STACK: RefCell<Vec<Rc<Active>>> = const { RefCell::new(Vec::new()) };
}

/// The thread of each live trace, for the error of a proxy that is used elsewhere.
static LIVE: LazyLock<Mutex<HashMap<u32, ThreadId>>> = LazyLock::new(Mutex::default);

/// Runs `body` with what the innermost trace of this thread records into; nothing outside of a trace.
///
/// For code that writes a graph in other ways than by calls on symbolic values: a module that is recorded node by
/// node, for example.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::trace::with_context;
/// let gm = symbolic_trace(traced!(|x: Float| {
///     let nodes = with_context(|context| context.graph().map(|graph| graph.len())).transpose()?;
///     assert_eq!(nodes, Some(1));
///     x * 2.0
/// }))?;
/// assert!(with_context(|_| ()).is_none());
/// # Ok::<(), fx_core::Error>(())
/// ```
pub fn with_context<R>(body: impl FnOnce(&TraceContext) -> R) -> Option<R> {
    innermost().map(|active| body(&active.context))
}

/// Whether a trace runs on this thread, for a program that acts on the answer: a trace's report
/// lists it.
///
/// ```
/// use fx_core::prelude::*;
/// let f = traced!(|x: Float| Ok(if fx_core::trace::is_tracing() { x } else { (x * 2.0)? }));
/// assert!(Trace::new(f).report()?.to_string().starts_with("is_tracing of the program = true"));
/// # Ok::<(), fx_core::Error>(())
/// ```
#[track_caller]
pub fn is_tracing() -> bool {
    let answer = is_recording();
    if answer && let Some(active) = innermost() {
        active.context.set_location(Location::caller());
        active.context.report(Frozen::Answer {
            question: "is_tracing",
            of: "the program".to_string(),
            answer: answer.to_string(),
        });
    }
    answer
}

/// Whether a call on this thread has to be dispatched, because a trace runs or a
/// [`Mode`](crate::trace::Mode) sees it: a tensor type asks this before it computes. Unlike
/// [`is_tracing`] it is in no report, because the call means the same either way.
#[inline]
pub fn may_record() -> bool {
    DEPTH.get() != 0
}

/// Whether a trace runs on this thread, for a layer that keeps state only in real runs. Unlike
/// [`is_tracing`] it is in no report.
pub fn is_recording() -> bool {
    DEPTH.get() != MODES.get()
}

/// How many modes see calls here.
pub(crate) fn visible_modes() -> usize {
    MODES.get()
}

/// Sets how many modes see calls, until the result is dropped.
pub(super) fn seeing_modes(count: usize) -> Seeing {
    let former = MODES.replace(count);
    DEPTH.set(DEPTH.get() - former + count);
    Seeing(former)
}

/// Restores how many modes see calls.
pub(super) struct Seeing(usize);

impl Drop for Seeing {
    fn drop(&mut self) {
        let count = MODES.replace(self.0);
        DEPTH.set(DEPTH.get() - count + self.0);
    }
}

/// The number that a proxy is, if the shapes of the inputs decide it.
fn number_of(proxy: Proxy, location: &'static Location<'static>) -> Option<i64> {
    let active = of_proxy(proxy).ok()?;
    active.context.set_location(location);
    // A claim that cannot hold is the error of the call that follows.
    active.context.number_by_hints(proxy).ok().flatten()
}

/// Notes that a program asked something of a proxy and acts on the answer.
fn note_answer(
    proxy: Proxy,
    question: &'static str,
    answer: &str,
    location: &'static Location<'static>,
) {
    let Ok(active) = of_proxy(proxy) else {
        return;
    };
    active.context.set_location(location);
    active.context.report(Frozen::Answer {
        question,
        of: active.context.name_of(proxy),
        answer: answer.to_string(),
    });
}

/// Keeps a trace on the stack; when dropped, it cuts the stack back to where it was.
pub(super) struct Running {
    depth: usize,
    id: TraceId,
}

impl Running {
    pub fn start(active: Rc<Active>) -> Self {
        let id = active.context.id();
        name_proxies_by(name_of);
        note_answers_by(note_answer);
        number_proxies_by(number_of);
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.0, std::thread::current().id());
        let depth = STACK.with_borrow_mut(|stack| {
            stack.push(active);
            stack.len() - 1
        });
        DEPTH.set(DEPTH.get() + 1);
        Running { depth, id }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended: Vec<Rc<Active>> =
            STACK.with_borrow_mut(|stack| stack.drain(self.depth.min(stack.len())..).collect());
        DEPTH.set(self.depth + MODES.get());
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.id.0);
        // Dropped outside the borrow: a tracer's own drop may trace.
        drop(ended);
    }
}

thread_local! {
    /// Whether what is known stays a node.
    static UNFOLDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` outside of the traces and modes of this thread, as in a trace of its own of which
/// nothing is recorded: layers keep no state in it.
pub(crate) fn outside<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(Vec<Rc<Active>>, usize, usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            STACK.set(std::mem::take(&mut self.0));
            DEPTH.set(self.1);
            MODES.set(self.2);
        }
    }
    let _restore = Restore(STACK.take(), DEPTH.replace(1), MODES.replace(0));
    body()
}

/// Runs a call whose result is a node even if it is known.
pub(super) fn unfolded<R>(call: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNFOLDED.set(self.0);
        }
    }
    let _former = Restore(UNFOLDED.replace(true));
    call()
}

/// Whether what is known is no node.
pub(super) fn folds() -> bool {
    !UNFOLDED.get()
}

/// The innermost trace of this thread.
pub(super) fn innermost() -> Option<Rc<Active>> {
    STACK.with_borrow(|stack| stack.last().cloned())
}

/// The traces of this thread, the innermost last.
pub(super) fn running() -> Vec<Rc<Active>> {
    STACK.with_borrow(Vec::clone)
}

/// The trace that a proxy belongs to.
pub(crate) fn of_proxy(proxy: Proxy) -> Result<Rc<Active>, Error> {
    STACK
        .with_borrow(|stack| {
            stack
                .iter()
                .rev()
                .find(|a| a.context.id() == proxy.trace)
                .cloned()
        })
        .ok_or_else(|| stray(proxy))
}

/// The name of a proxy's node, if its trace runs here and its graph is not being changed.
fn name_of(proxy: Proxy) -> Option<String> {
    STACK.with(|stack| {
        let stack = stack.try_borrow().ok()?;
        let active = stack.iter().find(|a| a.context.id() == proxy.trace)?;
        let graph = active.context.graph().ok()?;
        let node = graph.node(proxy.node).ok()?;
        Some(node.name().to_string())
    })
}

fn stray(proxy: Proxy) -> Error {
    if proxy.is_fake() {
        return Error::msg(format_args!(
            "`{proxy}` is a number of a fake tensor, which has no value: give its size in the spec, or trace with `Trace::inputs` and a hint"
        ));
    }
    let thread = LIVE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&proxy.trace.0)
        .copied();
    let reason = match thread {
        Some(thread) => format!(
            "its trace #{} runs on {thread:?}, this is {:?}; use it on its own thread",
            proxy.trace.0,
            std::thread::current().id()
        ),
        None => format!(
            "its trace #{} has ended; a symbolic value lives only inside the trace that made it, so return it from the traced function instead of storing it",
            proxy.trace.0
        ),
    };
    ErrorKind::ForeignProxy {
        proxy: proxy.to_string(),
        reason,
    }
    .into()
}
