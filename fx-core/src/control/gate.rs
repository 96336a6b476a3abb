//! What `#[trace(control_flow)]` writes for `if`, `while` and early `return`: regions that run in
//! place, behind a gate that the type of the condition opens.
//!
//! Invariant: for a plain `bool` nothing behind [`Fork::token`] is borrow-checked or compiled, since
//! the token of a plain condition has no value.

use std::convert::Infallible;
use std::panic::Location;

use super::decide::{Decide, Truth};
use super::forked::Forked;
use super::touched::Held;
use super::turning::Turning;
use crate::error::{Error, Result};
use crate::trace::convert::Output;
use crate::trace::open_side::Region;
use crate::trace::returns::as_ours;
use crate::value::handle::Proxy;
use crate::value::value::Value;

/// What decides: a plain `bool`, or what may be traced.
pub trait Kind: Sized {
    /// What stands before the code that only traced conditions have.
    type Token;
    /// A condition that is traced, and what it decides.
    type Traced;

    #[doc(hidden)]
    fn token() -> Self::Token;

    /// A traced condition, where there can be one.
    #[doc(hidden)]
    fn traced(condition: Proxy, caller: &'static Location<'static>) -> Option<Self::Traced>;

    #[doc(hidden)]
    fn as_traced(traced: &Self::Traced) -> &TracedFork;

    #[doc(hidden)]
    fn as_traced_mut(traced: &mut Self::Traced) -> &mut TracedFork;

    #[doc(hidden)]
    fn into_traced(traced: Self::Traced) -> Box<TracedFork>;
}

/// Decided by a plain `bool`.
#[derive(Debug)]
pub enum Plain {}

/// Decided by a value that may be traced.
#[derive(Debug)]
pub enum Symbolic {}

impl Kind for Plain {
    type Token = Infallible;
    type Traced = Infallible;

    #[inline(always)]
    fn token() -> Infallible {
        unreachable!("a plain condition is known")
    }

    #[inline(always)]
    fn traced(_: Proxy, _: &'static Location<'static>) -> Option<Infallible> {
        None
    }

    #[inline(always)]
    fn as_traced(traced: &Infallible) -> &TracedFork {
        match *traced {}
    }

    #[inline(always)]
    fn as_traced_mut(traced: &mut Infallible) -> &mut TracedFork {
        match *traced {}
    }

    #[inline(always)]
    fn into_traced(traced: Infallible) -> Box<TracedFork> {
        match traced {}
    }
}

impl Kind for Symbolic {
    type Token = ();
    type Traced = Box<TracedFork>;

    #[inline(always)]
    fn token() {}

    fn traced(condition: Proxy, caller: &'static Location<'static>) -> Option<Box<TracedFork>> {
        Some(Box::new(TracedFork {
            condition,
            caller,
            forked: None,
            names: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            joined: Vec::new().into_iter(),
            held: Held::default(),
        }))
    }

    fn as_traced(traced: &Box<TracedFork>) -> &TracedFork {
        traced
    }

    fn as_traced_mut(traced: &mut Box<TracedFork>) -> &mut TracedFork {
        traced
    }

    fn into_traced(traced: Box<TracedFork>) -> Box<TracedFork> {
        traced
    }
}

/// A condition: its truth, or what decides when the graph runs.
pub enum Fork<K: Kind> {
    /// Rust decides.
    Known(bool),
    /// The graph decides.
    Traced(K::Traced),
}

/// A traced condition with the branch that it decides, and the locals that change there.
pub struct TracedFork {
    condition: Proxy,
    caller: &'static Location<'static>,
    forked: Option<Forked>,
    names: Vec<&'static str>,
    before: Vec<Value>,
    /// After the side under way; the next one is not yet restored.
    after: Vec<Value>,
    joined: std::vec::IntoIter<Value>,
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
        Truth::Traced(condition) => K::traced(condition, caller)
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

    /// Stands before what only a traced condition has.
    #[inline(always)]
    pub fn token(&self) -> K::Token {
        K::token()
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

impl TracedFork {
    fn begin(&mut self) -> Result<()> {
        let forked = Forked::begin(self.condition, false, Region::Branch, self.caller)?;
        self.forked = Some(forked);
        Ok(())
    }

    fn is_second(&self) -> bool {
        self.forked.as_ref().is_some_and(Forked::is_second)
    }

    /// A local after a side; what it is for the next side.
    fn turn(&mut self, after: Value) -> Option<Value> {
        let before = match self.is_second() {
            true => None,
            false => self.before.get_mut(self.after.len()).map(std::mem::take),
        };
        self.after.push(after);
        before
    }

    /// Ends a side that gives `value`; what both give after the second.
    fn leave(&mut self, value: Value) -> Result<Option<Value>> {
        let mut values = std::mem::take(&mut self.after);
        values.push(value);
        let names = &self.names;
        let name = |at: usize| match names.get(at) {
            Some(name) => format!("`{name}`"),
            None => "the value of the branch".to_string(),
        };
        let Some(forked) = &mut self.forked else {
            return Err(Error::msg("a branch that has not begun"));
        };
        let Some(mut joined) = forked.end_side(values, &name)? else {
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

/// After a side: a local as the side left it; before the second side it is as it was.
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

/// After both sides: a local as the branch gives it.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
#[inline(always)]
pub fn settle<K: Kind, T: Local<K>>(fork: &mut Fork<K>, local: &mut T) -> Result<()> {
    let joined = fork.traced_mut().and_then(|traced| traced.joined.next());
    joined.map_or(Ok(()), |joined| T::load(local, joined))
}

/// Ends a side; after the second one, what the branch gives.
///
/// # Errors
/// Returns an error if the side is one, or the sides give different structures.
#[inline(always)]
pub fn leave<K: Kind, T: Given<K>>(fork: &mut Fork<K>, value: T) -> Result<Option<T>> {
    let value = value.give()?;
    match fork.traced_mut() {
        Some(traced) => traced.leave(value)?.map(T::take).transpose(),
        None => Ok(None),
    }
}

/// The early `return`s of a function that traced values decide: what follows each, to the end of the
/// function, is its other side.
pub struct EarlyReturns<R> {
    pending: Vec<TracedFork>,
    join: Option<Join<R>>,
}

/// Ends the second side of an early `return`.
type Join<R> = fn(&mut TracedFork, R) -> Result<R>;

impl<R> Default for EarlyReturns<R> {
    #[inline(always)]
    fn default() -> Self {
        EarlyReturns {
            pending: Vec::new(),
            join: None,
        }
    }
}

impl<R> EarlyReturns<R> {
    /// The value of the function, whose last expression or `return` gives `value`.
    ///
    /// # Errors
    /// Returns an error if the values have different structures.
    #[inline(always)]
    pub fn finish(&mut self, value: R) -> Result<R> {
        match self.join {
            None => Ok(value),
            Some(join) => self.joined(value, join),
        }
    }

    /// Joins the latest first: each is inside what follows the one before.
    #[cold]
    fn joined(&mut self, mut value: R, join: Join<R>) -> Result<R> {
        while let Some(mut traced) = self.pending.pop() {
            value = join(&mut traced, value)?;
        }
        Ok(value)
    }

    /// Ends the block of an `if` in a `return` of a value.
    ///
    /// # Errors
    /// Returns an error if the value is one.
    pub fn leave<K: Kind>(&mut self, fork: Fork<K>, value: R) -> Result<()>
    where
        R: Given<K>,
    {
        let value = value.give()?;
        let Fork::Traced(traced) = fork else {
            return Ok(());
        };
        let mut traced = *K::into_traced(traced);
        traced.after.clear();
        traced.names.clear();
        traced.leave(value)?;
        if let Some(forked) = &mut traced.forked {
            forked.becomes("return");
        }
        self.pending.push(traced);
        self.join = Some(|traced, value| {
            let joined = traced.leave(value.give()?)?;
            R::take(joined.unwrap_or_default())
        });
        Ok(())
    }

    /// Ends the block of an `if` in a `return` of an error: a run that would take it fails with that.
    ///
    /// # Errors
    /// Returns an error if the trace cannot record an assertion.
    pub fn refuse<K: Kind>(&self, fork: Fork<K>, value: R) -> Result<()>
    where
        R: Refusal<K>,
    {
        let Fork::Traced(traced) = fork else {
            return Ok(());
        };
        match (K::into_traced(traced).forked, value.words()) {
            (Some(forked), Some(words)) => forked.refuse(&words),
            _ => Ok(()),
        }
    }
}

/// An error that a function returns early.
#[diagnostic::on_unimplemented(
    message = "a run of a graph cannot fail with this error",
    label = "a traced value decides whether this is returned: the error implements `Display`"
)]
pub trait Refusal<K: Kind> {
    #[doc(hidden)]
    fn words(self) -> Option<String>;
}

#[diagnostic::do_not_recommend]
impl<T> Refusal<Plain> for T {
    fn words(self) -> Option<String> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<T, E: std::fmt::Display> Refusal<Symbolic> for Result<T, E> {
    fn words(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// A loop whose condition may be traced.
pub struct Turns<K: Kind> {
    kind: std::marker::PhantomData<K>,
    open: Option<Box<Turning>>,
    names: Vec<&'static str>,
    state: Vec<Value>,
    next: std::vec::IntoIter<Value>,
    pub(super) held: Held,
}

impl<K: Kind> Default for Turns<K> {
    #[inline(always)]
    fn default() -> Self {
        Turns {
            kind: std::marker::PhantomData,
            open: None,
            names: Vec::new(),
            state: Vec::new(),
            next: Vec::new().into_iter(),
            held: Held::default(),
        }
    }
}

impl<K: Kind> Turns<K> {
    /// Whether Rust decides about the next turn.
    #[inline(always)]
    pub fn is_known(&self, fork: &Fork<K>) -> bool {
        fork.is_known() && self.open.is_none()
    }

    /// Whether a turn is recorded.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Ends the turn under way, or begins the one that is recorded; returns whether its body is next.
    ///
    /// # Errors
    /// Returns an error if a turn changes the structure of a local.
    pub fn turn(&mut self, fork: &mut Fork<K>) -> Result<bool> {
        let state = std::mem::take(&mut self.state);
        let names = std::mem::take(&mut self.names);
        let condition = match fork {
            Fork::Known(truth) => Truth::Known(*truth),
            Fork::Traced(traced) => Truth::Traced(K::as_traced(traced).condition),
        };
        let (next, is_body) = match (self.open.take(), fork.traced_mut()) {
            (Some(turning), _) => {
                let name = |at: usize| match names.get(at) {
                    Some(name) => format!("`{name}`"),
                    None => "the state".to_string(),
                };
                (turning.end(condition, state, &name)?, false)
            }
            (None, Some(traced)) => {
                let (turning, state) = Turning::begin(traced.condition, state, traced.caller)?;
                self.open = Some(Box::new(turning));
                (state, true)
            }
            (None, None) => (state, matches!(condition, Truth::Known(true))),
        };
        self.next = next.into_iter();
        Ok(is_body)
    }
}

/// At the head of a loop: a local as it is.
#[inline(always)]
pub fn gather<K: Kind, T: Local<K>>(turns: &mut Turns<K>, local: &T, name: &'static str) {
    turns.names.push(name);
    turns.state.push(T::save(local));
}

/// A local as any turn finds it, or as the loop leaves it.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
#[inline(always)]
pub fn put<K: Kind, T: Local<K>>(turns: &mut Turns<K>, local: &mut T) -> Result<()> {
    turns
        .next
        .next()
        .map_or(Ok(()), |value| T::load(local, value))
}
