//! What `#[trace(control_flow)]` writes for `break` and `continue`, the exits of a loop: what follows
//! one that a traced value decides, to the end of the iteration, is its other branch.
//!
//! Invariant: an exit holds every local that the loop may change; the latest exit is joined first.

use std::panic::Location;

use super::branch_recorder::BranchRecorder;
use super::cond::Cond;
use super::decide::Truth;
use super::held::Held;
use super::if_region::{Fork, Local, TracedFork};
use super::kind::{Kind, KindOf, Plain};
use crate::error::Result;
use crate::trace::open_side::Region;
use crate::value::value::Value;

/// The exits of one loop.
pub struct Exits {
    pending: Vec<Exit>,
    /// Whether the iteration that has ended is followed by another one, by its exits.
    go: Truth,
    /// Whether the iteration under way ends by a `break` that Rust decides, for the runs that came to it.
    stopped: bool,
    is_recording: bool,
    /// The test of the loop's condition, which only a loop without an exit comes to.
    test: Option<BranchRecorder>,
    /// The locals after the last iteration, if the loop may be over when the graph runs.
    left_in: Option<Vec<Value>>,
    pub(super) held: Held,
}

/// An exit whose other branch is under way.
struct Exit {
    recorder: BranchRecorder,
    goes_on: bool,
}

impl Default for Exits {
    #[inline(always)]
    fn default() -> Self {
        Exits {
            pending: Vec::new(),
            go: Truth::Known(true),
            stopped: false,
            is_recording: false,
            test: None,
            left_in: None,
            held: Held::default(),
        }
    }
}

impl Exits {
    /// Whether the end of an iteration has something to join.
    #[inline(always)]
    pub fn is_needed(&self) -> bool {
        !self.pending.is_empty() || self.stopped || self.is_recording
    }

    /// Whether there are exits whose other branch is under way.
    #[inline(always)]
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether a `break` that Rust decides is for some runs only: those that came to it, of an
    /// iteration that is recorded, or that others have left by a `continue`.
    #[inline(always)]
    pub fn breaks_for_some(&self) -> bool {
        self.is_recording || self.pending.iter().any(|exit| exit.goes_on)
    }

    /// Says whether the iteration that begins is recorded.
    #[inline(always)]
    pub fn records(&mut self, is_recording: bool) {
        self.is_recording = is_recording;
    }

    /// A `break` that Rust decides, for some runs.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Ends the block of an `if` in a `break` or a `continue`.
    ///
    /// # Errors
    /// Returns an error if a local cannot be part of a graph.
    pub fn leave<K: Kind>(&mut self, fork: Fork<K>, goes_on: bool) -> Result<()> {
        let Fork::Traced(traced) = fork else {
            return Ok(());
        };
        let (recorder, state, mut held) = K::into_traced(traced).into_exit();
        let Some(mut recorder) = recorder else {
            return Ok(());
        };
        self.held.join(&mut held);
        end(&mut recorder, Value::Bool(goes_on), state, &unnamed)?;
        recorder.becomes(if goes_on { "continue" } else { "break" });
        self.pending.push(Exit { recorder, goes_on });
        Ok(())
    }

    /// Before the condition of a loop: whether it is asked.
    ///
    /// # Errors
    /// Returns an error if the trace has ended.
    #[inline(always)]
    #[track_caller]
    pub fn test<K: Kind>(&mut self, _: KindOf<K>) -> Result<bool> {
        match self.go {
            Truth::Known(true) => Ok(true),
            _ => self.test_after_exits(K::IS_PLAIN, Location::caller()),
        }
    }

    #[cold]
    fn test_after_exits(
        &mut self,
        is_plain: bool,
        caller: &'static Location<'static>,
    ) -> Result<bool> {
        match self.take_go() {
            Truth::Known(go) => return Ok(go),
            // Rust decides about the next iteration: what follows is for a loop without an exit.
            Truth::Traced(go) if is_plain => {
                let mut recorder = Cond::record(go, true, Region::After("break"), caller)?;
                let state = self.left_in.clone().unwrap_or_default();
                end(&mut recorder, Value::Bool(false), state, &unnamed)?;
                self.pending.push(Exit {
                    recorder,
                    goes_on: false,
                });
            }
            Truth::Traced(go) => {
                self.test = Some(Cond::record(go, false, Region::Branch, caller)?);
            }
        }
        Ok(true)
    }

    /// After the condition of a loop: it holds if no exit was taken, and it does.
    ///
    /// # Errors
    /// Returns an error if the condition cannot be part of a graph.
    #[inline(always)]
    #[track_caller]
    pub fn tested<K: Kind>(&mut self, fork: Fork<K>) -> Result<Fork<K>> {
        match self.test.take() {
            None => Ok(fork),
            Some(test) => tested(test, fork, Location::caller()),
        }
    }

    /// Before an iteration of a loop whose iterations Rust decides.
    ///
    /// # Errors
    /// Returns an error if the trace has ended.
    #[inline(always)]
    #[track_caller]
    pub fn again(&mut self) -> Result<()> {
        match self.go {
            Truth::Known(true) => Ok(()),
            _ => self.test_after_exits(true, Location::caller()).map(drop),
        }
    }

    /// Whether no exit of an earlier iteration can be taken still.
    pub(super) fn begins_anew(&self) -> bool {
        self.left_in.is_none() && !self.is_recording
    }

    /// Whether there is another iteration, as the exits of the last one say.
    pub(super) fn take_go(&mut self) -> Truth {
        std::mem::replace(&mut self.go, Truth::Known(true))
    }

    /// Joins the exits of an iteration that ends in this state.
    pub(super) fn join(
        &mut self,
        mut state: Vec<Value>,
        name: &dyn Fn(usize) -> String,
    ) -> Result<Vec<Value>> {
        let mut go = Truth::Known(!std::mem::take(&mut self.stopped));
        while let Some(Exit {
            mut recorder,
            goes_on,
        }) = self.pending.pop()
        {
            // Without a value for it, an exit says by its condition whether there is another iteration.
            let by_condition = matches!(go, Truth::Known(true));
            let other = match go {
                Truth::Known(_) if by_condition => Value::Bool(goes_on),
                Truth::Known(go) => Value::Bool(go),
                Truth::Traced(go) => Value::Proxy(go),
            };
            let mut joined = end(&mut recorder, other, state, name)?.into_iter();
            go = match joined.next() {
                _ if by_condition && !goes_on => Truth::Traced(recorder.takes_second()?),
                Some(Value::Bool(go)) => Truth::Known(go),
                Some(Value::Proxy(go)) => Truth::Traced(go),
                _ => Truth::Known(true),
            };
            state = joined.collect();
        }
        self.go = go;
        self.left_in = (!matches!(go, Truth::Known(true))).then(|| state.clone());
        Ok(state)
    }
}

/// Ends a branch of an exit: whether the loop goes on, and its locals.
fn end(
    recorder: &mut BranchRecorder,
    goes_on: Value,
    state: Vec<Value>,
    name: &dyn Fn(usize) -> String,
) -> Result<Vec<Value>> {
    let values = std::iter::once(goes_on).chain(state).collect();
    let joined = recorder.end_branch(values, &|at| match at.checked_sub(1) {
        Some(at) => name(at),
        None => "whether the loop goes on".to_string(),
    })?;
    Ok(joined.unwrap_or_default())
}

/// The name of a local of a branch whose locals are compared later, or of none.
fn unnamed(_: usize) -> String {
    String::new()
}

/// The truth of a condition that was asked in one branch only.
#[cold]
fn tested<K: Kind>(
    mut test: BranchRecorder,
    fork: Fork<K>,
    caller: &'static Location<'static>,
) -> Result<Fork<K>> {
    let condition = match fork.truth() {
        Truth::Known(holds) => Value::Bool(holds),
        Truth::Traced(holds) => Value::Proxy(holds),
    };
    end(&mut test, condition, Vec::new(), &unnamed)?;
    let joined = end(&mut test, Value::Bool(false), Vec::new(), &unnamed)?;
    Ok(match joined.into_iter().next() {
        Some(Value::Proxy(holds)) => match K::traced(TracedFork::new(holds, caller)) {
            Some(traced) => Fork::Traced(traced),
            None => fork,
        },
        _ => Fork::Known(false),
    })
}

/// At an exit: a local as it leaves the loop.
#[inline(always)]
pub fn note<K: Kind, T: Local<K>>(fork: &mut Fork<K>, local: &T, _: &'static str) {
    if let Some(traced) = fork.traced_mut() {
        traced.note(T::save(local));
    }
}

/// What decides about a `break` with a value.
#[diagnostic::on_unimplemented(
    message = "a loop that a traced value ends gives no value",
    label = "assign the value to a local that is declared before the loop, and `break` without one"
)]
pub trait GivesValue {}

impl GivesValue for Plain {}

/// What decides about a jump where a local is hidden.
#[diagnostic::on_unimplemented(
    message = "a local that the loop changes is hidden at a jump that a traced value decides",
    label = "between the loop and this jump another local has the name of one that the loop changes: rename it"
)]
pub trait Hides {}

impl Hides for Plain {}

/// Written at a `break` with a value.
#[inline(always)]
pub fn gives_value<K: Kind + GivesValue>(_: &Fork<K>) {}

/// Written at a jump where a local is hidden.
#[inline(always)]
pub fn hides<K: Kind + Hides>(_: &Fork<K>) {}
