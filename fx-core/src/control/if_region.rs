//! What `#[trace(control_flow)]` writes for an `if`: both branches run in place, one after the other,
//! and what they record becomes the branches of a graph.
//!
//! Invariant: for a plain `bool` nothing behind [`Fork::token`] is borrow-checked or compiled, since
//! the token of a plain condition has no value.

use std::panic::Location;

use super::branch_recorder::BranchRecorder;
use super::cond::Cond;
use super::decide::{Decide, Truth};
use super::held::Held;
use super::kind::{HasKind, Kind, KindOf, Plain, Symbolic};
use crate::error::{Error, Result};
use crate::trace::convert::Output;
use crate::trace::open_side::Region;
use crate::trace::returns::as_ours;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// A condition: its truth, or what decides when the graph runs.
pub enum Fork<K: Kind> {
    /// Rust decides.
    Known(bool),
    /// The graph decides.
    Traced(K::Traced<TracedFork>),
}

/// A traced condition with the branch that it decides, and the locals that change there.
pub struct TracedFork {
    condition: Proxy,
    /// Whether the block that stands first is the one for a false condition.
    negated: bool,
    caller: &'static Location<'static>,
    recorder: Option<BranchRecorder>,
    names: Vec<&'static str>,
    before: Vec<Value>,
    /// After the branch under way; the next one is not yet restored.
    after: Vec<Value>,
    joined: std::vec::IntoIter<Value>,
    /// At an exit of a loop.
    noted: Vec<Value>,
    pub(super) held: Held,
}

/// Written for the condition of an `if` or a `while`.
///
/// # Errors
/// Returns an error if the condition is one, or is neither true nor false.
#[inline(always)]
#[track_caller]
pub fn fork<C: Decide>(condition: C) -> Result<Fork<C::Kind>> {
    match condition.decide()? {
        Truth::Known(truth) => Ok(Fork::Known(truth)),
        traced => traced_fork(traced, Location::caller()),
    }
}

/// A condition that its tracer may know.
#[cold]
fn traced_fork<K: Kind>(truth: Truth, caller: &'static Location<'static>) -> Result<Fork<K>> {
    match truth.or_tracers(caller)? {
        Truth::Known(truth) => Ok(Fork::Known(truth)),
        Truth::Traced(condition) => K::traced(TracedFork::new(condition, caller))
            .map(Fork::Traced)
            .ok_or_else(|| Error::msg("a plain condition is known")),
    }
}

impl<K: Kind> Fork<K> {
    /// Whether its truth is known: Rust decides.
    #[inline(always)]
    pub fn is_known(&self) -> bool {
        matches!(self, Fork::Known(_))
    }

    /// Whether the block for a true condition is next.
    #[inline(always)]
    pub fn then(&self) -> bool {
        match self {
            Fork::Known(truth) => *truth,
            Fork::Traced(traced) => !K::as_traced(traced).is_second(),
        }
    }

    /// What decides here.
    #[inline(always)]
    pub fn kind(&self) -> KindOf<K> {
        KindOf::default()
    }

    /// Stands before what only a traced condition has.
    #[inline(always)]
    pub fn token(&self) -> K::Token {
        K::token()
    }

    /// The same choice, of a condition that is false where this one is true.
    #[inline(always)]
    pub fn negated(self) -> Self {
        match self {
            Fork::Known(truth) => Fork::Known(!truth),
            Fork::Traced(mut traced) => {
                K::as_traced_mut(&mut traced).negated ^= true;
                Fork::Traced(traced)
            }
        }
    }

    /// Its truth.
    pub(super) fn truth(&self) -> Truth {
        match self {
            Fork::Known(truth) => Truth::Known(*truth),
            Fork::Traced(traced) => Truth::Traced(K::as_traced(traced).condition),
        }
    }

    /// Begins the branch.
    ///
    /// # Errors
    /// Returns an error if the condition is of a trace that has ended.
    #[inline(always)]
    pub fn begin(&mut self) -> Result<()> {
        self.traced_mut().map_or(Ok(()), TracedFork::begin)
    }

    #[inline(always)]
    pub(super) fn traced_mut(&mut self) -> Option<&mut TracedFork> {
        match self {
            Fork::Known(_) => None,
            Fork::Traced(traced) => Some(K::as_traced_mut(traced)),
        }
    }
}

impl<K: Kind> HasKind for Fork<K> {
    type Kind = K;
}

impl<K: Kind> KindOf<K> {
    /// This is what decides a branch.
    #[inline(always)]
    pub fn is_of_branch(&self, _: &Fork<K>) {}
}

impl TracedFork {
    pub(super) fn new(condition: Proxy, caller: &'static Location<'static>) -> Self {
        TracedFork {
            condition,
            negated: false,
            caller,
            recorder: None,
            names: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            joined: Vec::new().into_iter(),
            noted: Vec::new(),
            held: Held::default(),
        }
    }

    fn begin(&mut self) -> Result<()> {
        let recorder = Cond::record(self.condition, self.negated, Region::Branch, self.caller)?;
        self.recorder = Some(recorder);
        Ok(())
    }

    fn is_second(&self) -> bool {
        self.recorder
            .as_ref()
            .is_some_and(BranchRecorder::is_second)
    }

    /// A local after a branch; what it is for the next one.
    fn turn(&mut self, after: Value) -> Option<Value> {
        let before = match self.is_second() {
            true => None,
            false => self.before.get_mut(self.after.len()).map(std::mem::take),
        };
        self.after.push(after);
        before
    }

    pub(super) fn caller(&self) -> &'static Location<'static> {
        self.caller
    }

    pub(super) fn note(&mut self, local: Value) {
        self.noted.push(local);
    }

    /// For an exit of a loop: the branch, and the locals as they leave the loop.
    pub(super) fn into_exit(self) -> (Option<BranchRecorder>, Vec<Value>, Held) {
        (self.recorder, self.noted, self.held)
    }

    /// For an early `return`: the branch, without the locals, which the function does not need.
    pub(super) fn into_return(mut self) -> Self {
        self.after.clear();
        self.names.clear();
        self
    }

    pub(super) fn recorder_mut(&mut self) -> Option<&mut BranchRecorder> {
        self.recorder.as_mut()
    }

    /// Ends a branch that gives `value`; what both give after the second.
    pub(super) fn leave(&mut self, value: Value) -> Result<Option<Value>> {
        let mut values = std::mem::take(&mut self.after);
        values.push(value);
        let names = &self.names;
        let name = |at: usize| match names.get(at) {
            Some(name) => format!("`{name}`"),
            None => "the value of the branch".to_string(),
        };
        let Some(recorder) = &mut self.recorder else {
            return Err(Error::msg("a branch that has not begun"));
        };
        let Some(mut joined) = recorder.end_branch(values, &name)? else {
            return Ok(None);
        };
        let value = joined.pop();
        self.joined = joined.into_iter();
        Ok(value)
    }
}

/// A local of the function that changes in a branch or a loop.
#[diagnostic::on_unimplemented(
    message = "a local of type `{Self}` changes where a traced value decides",
    label = "not a tensor, `Int`, `Float`, `Bool` or a structure of them",
    note = "the graph decides when it runs, and can choose only between values that it holds"
)]
pub trait Local<K: Kind> {
    #[doc(hidden)]
    fn save(&self) -> Value;

    #[doc(hidden)]
    fn load(&mut self, value: Value) -> Result<()>;

    #[doc(hidden)]
    fn loaded(value: Value) -> Result<Self>
    where
        Self: Sized;
}

#[diagnostic::do_not_recommend]
impl<T> Local<Plain> for T {
    #[inline(always)]
    fn save(&self) -> Value {
        Value::None
    }

    #[inline(always)]
    fn load(&mut self, _: Value) -> Result<()> {
        Ok(())
    }

    fn loaded(_: Value) -> Result<T> {
        Err(Error::msg("a plain branch leaves its locals as they are"))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Output + Clone> Local<Symbolic> for T {
    fn save(&self) -> Value {
        self.clone().into_value()
    }

    fn load(&mut self, value: Value) -> Result<()> {
        *self = T::from_value(value)?;
        Ok(())
    }

    fn loaded(value: Value) -> Result<T> {
        T::from_value(value)
    }
}

/// What a branch of a traced value gives.
#[diagnostic::on_unimplemented(
    message = "a branch that a traced value decides cannot give `{Self}`",
    label = "not a tensor, `Int`, `Float`, `Bool` or a structure of them",
    note = "a plain number becomes one that a graph holds by `Int::from(..)` or `Float::from(..)`"
)]
pub trait Given<K: Kind>: Sized {
    #[doc(hidden)]
    fn give(self) -> Result<Value>;

    #[doc(hidden)]
    fn take(value: Value) -> Result<Self>;
}

#[diagnostic::do_not_recommend]
impl<T> Given<Plain> for T {
    fn give(self) -> Result<Value> {
        Ok(Value::None)
    }

    fn take(_: Value) -> Result<Self> {
        Err(Error::msg("a plain branch gives its own value"))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Output> Given<Symbolic> for T {
    fn give(self) -> Result<Value> {
        Ok(self.into_value())
    }

    fn take(value: Value) -> Result<Self> {
        T::from_value(value)
    }
}

#[diagnostic::do_not_recommend]
impl<T, E> Given<Symbolic> for Result<T, E>
where
    T: Output,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn give(self) -> Result<Value> {
        self.map(T::into_value)
            .map_err(|error| as_ours(error.into()))
    }

    fn take(value: Value) -> Result<Self> {
        Ok(Ok(T::from_value(value)?))
    }
}

/// Before a branch: a local as it is.
#[inline(always)]
pub fn keep<K: Kind, T: Local<K>>(fork: &mut Fork<K>, local: &T, name: &'static str) {
    if let Some(traced) = fork.traced_mut() {
        traced.names.push(name);
        traced.before.push(T::save(local));
    }
}

/// After a branch: a local as the branch left it; before the second one it is as it was.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
#[inline(always)]
pub fn turn<K: Kind, T: Local<K>>(fork: &mut Fork<K>, local: &mut T) -> Result<()> {
    let before = fork
        .traced_mut()
        .and_then(|traced| traced.turn(T::save(local)));
    before.map_or(Ok(()), |before| T::load(local, before))
}

/// After a branch that ends in a jump: a local as it was before it.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
pub fn restored<K: Kind, T: Local<K>>(fork: &mut Fork<K>) -> Result<T> {
    let before = fork
        .traced_mut()
        .and_then(|traced| traced.turn(Value::None));
    T::loaded(before.unwrap_or_default())
}

/// After both branches: a local as the branch gives it.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
#[inline(always)]
pub fn settle<K: Kind, T: Local<K>>(fork: &mut Fork<K>, local: &mut T) -> Result<()> {
    let joined = fork.traced_mut().and_then(|traced| traced.joined.next());
    joined.map_or(Ok(()), |joined| T::load(local, joined))
}

/// Ends the first branch.
///
/// # Errors
/// Returns an error if the branch gives one.
#[inline(always)]
pub fn leave<K: Kind, T: Given<K>>(fork: &mut Fork<K>, value: T) -> Result<()> {
    let value = value.give()?;
    fork.traced_mut()
        .map_or(Ok(()), |traced| traced.leave(value).map(drop))
}

/// Ends the second branch; returns what the branch gives.
///
/// # Errors
/// Returns an error if the branch gives one, or the branches give different structures.
#[inline(always)]
pub fn join<K: Kind, T: Given<K>>(fork: &mut Fork<K>, value: T) -> Result<T> {
    let value = value.give()?;
    let joined = fork.traced_mut().map(|traced| traced.leave(value));
    T::take(joined.transpose()?.flatten().unwrap_or_default())
}
