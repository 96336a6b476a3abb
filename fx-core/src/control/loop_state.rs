//! What `#[trace(control_flow)]` writes for a loop: the locals that an iteration carries to the next
//! one, at its head and at its end.
//!
//! Invariant: while an iteration is recorded, every local that it may change is an input of the body.

use std::marker::PhantomData;
use std::panic::Location;

use super::break_continue::Exits;
use super::decide::Truth;
use super::held::Held;
use super::if_region::{Fork, Local};
use super::kind::{HasKind, Kind, KindOf};
use super::loop_recorder::LoopRecorder;
use super::while_loop::While;
use crate::error::Result;
use crate::value::value::Value;

/// A loop whose iterations a traced value may decide.
pub struct LoopState<K: Kind> {
    kind: PhantomData<K>,
    open: Option<Box<LoopRecorder>>,
    /// Whether these are the locals at the end of an iteration, where its exits are joined.
    joins: bool,
    names: Vec<&'static str>,
    state: Vec<Value>,
    next: std::vec::IntoIter<Value>,
    pub(super) held: Held,
}

impl<K: Kind> Default for LoopState<K> {
    #[inline(always)]
    fn default() -> Self {
        LoopState {
            kind: PhantomData,
            open: None,
            joins: false,
            names: Vec::new(),
            state: Vec::new(),
            next: Vec::new().into_iter(),
            held: Held::default(),
        }
    }
}

impl<K: Kind> LoopState<K> {
    /// For the end of an iteration.
    #[inline(always)]
    pub fn joining() -> Self {
        LoopState {
            joins: true,
            ..LoopState::default()
        }
    }

    /// What decides here.
    #[inline(always)]
    pub fn kind(&self) -> KindOf<K> {
        KindOf::default()
    }

    /// Whether Rust decides about the next iteration.
    #[inline(always)]
    pub fn is_known(&self, fork: &Fork<K>) -> bool {
        fork.is_known() && self.open.is_none()
    }

    /// Whether an iteration is recorded.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether plain data is held to be as it is now.
    pub(super) fn holds(&self) -> bool {
        !self.joins && self.open.is_none()
    }

    /// Stands before what only a traced loop has.
    #[inline(always)]
    pub fn token(&self) -> K::Token {
        K::token()
    }

    /// Ends the iteration under way, or begins the one that is recorded; returns whether its body is next.
    ///
    /// # Errors
    /// Returns an error if an iteration changes the structure of a local.
    pub fn turn(&mut self, fork: &mut Fork<K>) -> Result<bool> {
        let again = fork.truth();
        let traced = fork.traced_mut();
        let caller = traced.map_or_else(Location::caller, |traced| traced.caller());
        let (state, names) = self.gathered();
        self.after(again, state, &names, caller)
    }

    /// What is next after an iteration of which this is known: whether there is another one.
    fn after(
        &mut self,
        again: Truth,
        state: Vec<Value>,
        names: &[&'static str],
        caller: &'static Location<'static>,
    ) -> Result<bool> {
        let (next, is_body) = match (self.open.take(), again) {
            (Some(recorder), again) => (recorder.end(again, state, &named(names))?, false),
            (None, Truth::Traced(go)) => {
                let (recorder, state) = While::record(go, state, caller)?;
                self.open = Some(Box::new(recorder));
                (state, true)
            }
            (None, Truth::Known(again)) => (state, again),
        };
        self.next = next.into_iter();
        Ok(is_body)
    }

    /// Joins the exits of an iteration, or of a loop.
    ///
    /// # Errors
    /// Returns an error if the locals have another structure at an exit, or an exit leaves a branch.
    pub fn join(&mut self, exits: &mut Exits) -> Result<()> {
        let (state, _) = self.joined(exits)?;
        self.next = state.into_iter();
        Ok(())
    }

    /// The locals after the exits, with their names.
    fn joined(&mut self, exits: &mut Exits) -> Result<Gathered> {
        let (state, names) = self.gathered();
        if exits.begins_anew() {
            self.held = Held::default();
        }
        self.held.join(&mut exits.held);
        let state = exits.join(state, &named(&names))?;
        Ok((state, names))
    }

    /// The locals as they were gathered, with their names.
    fn gathered(&mut self) -> Gathered {
        let state = std::mem::take(&mut self.state);
        (state, std::mem::take(&mut self.names))
    }

    /// Joins the exits of an iteration of a `loop`; returns whether there is another one.
    ///
    /// # Errors
    /// Returns an error if the locals have another structure at an exit, or an exit leaves a branch.
    #[track_caller]
    pub fn repeat(&mut self, exits: &mut Exits) -> Result<bool> {
        let caller = Location::caller();
        let (state, names) = self.joined(exits)?;
        let is_body = self.after(exits.take_go(), state, &names, caller)?;
        exits.records(self.is_open());
        Ok(is_body)
    }
}

impl<K: Kind> HasKind for LoopState<K> {
    type Kind = K;
}

impl<K: Kind> KindOf<K> {
    /// This is what decides at the end of an iteration.
    #[inline(always)]
    pub fn is_of_loop(&self, _: &LoopState<K>) {}
}

/// Locals, with their names.
type Gathered = (Vec<Value>, Vec<&'static str>);

/// The names of the locals, for an error.
fn named(names: &[&'static str]) -> impl Fn(usize) -> String {
    move |at| match names.get(at) {
        Some(name) => format!("`{name}`"),
        None => "the state".to_string(),
    }
}

/// At the head of a loop, or at the end of its iteration: a local as it is.
#[inline(always)]
pub fn gather<K: Kind, T: Local<K>>(carried: &mut LoopState<K>, local: &T, name: &'static str) {
    carried.names.push(name);
    carried.state.push(T::save(local));
}

/// A local as any iteration finds it, or as the iteration or the loop leaves it.
///
/// # Errors
/// Returns an error if the value is not of the local's type.
#[inline(always)]
pub fn put<K: Kind, T: Local<K>>(carried: &mut LoopState<K>, local: &mut T) -> Result<()> {
    carried
        .next
        .next()
        .map_or(Ok(()), |value| T::load(local, value))
}
