//! What `#[trace(control_flow)]` writes for a loop: the locals that a turn carries to the next one,
//! at its head and at its end.
//!
//! Invariant: while a turn is recorded, every local that it may change is an input of the body.

use std::marker::PhantomData;
use std::panic::Location;

use super::decide::Truth;
use super::exits::Exits;
use super::gate::{Fork, Kind, Local, Or};
use super::touched::Held;
use super::turning::Turning;
use crate::error::Result;
use crate::value::value::Value;

/// A loop whose turns a traced value may decide.
pub struct Turns<K: Kind> {
    kind: PhantomData<K>,
    open: Option<Box<Turning>>,
    /// Whether these are the locals at the end of a turn, where its exits are joined.
    joins: bool,
    names: Vec<&'static str>,
    state: Vec<Value>,
    next: std::vec::IntoIter<Value>,
    pub(super) held: Held,
}

impl<K: Kind> Default for Turns<K> {
    #[inline(always)]
    fn default() -> Self {
        Turns {
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

impl<K: Kind> Turns<K> {
    /// For the end of a turn.
    #[inline(always)]
    pub fn joining() -> Self {
        Turns {
            joins: true,
            ..Turns::default()
        }
    }

    /// What decides here.
    #[inline(always)]
    pub fn kind(&self) -> KindOf<K> {
        KindOf::default()
    }

    /// Whether Rust decides about the next turn.
    #[inline(always)]
    pub fn is_known(&self, fork: &Fork<K>) -> bool {
        fork.is_known() && self.open.is_none()
    }

    /// Whether a turn is recorded.
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

    /// Ends the turn under way, or begins the one that is recorded; returns whether its body is next.
    ///
    /// # Errors
    /// Returns an error if a turn changes the structure of a local.
    pub fn turn(&mut self, fork: &mut Fork<K>) -> Result<bool> {
        let again = fork.truth();
        let traced = fork.traced_mut();
        let caller = traced.map_or_else(Location::caller, |traced| traced.caller());
        let (state, names) = self.gathered();
        self.after(again, state, &names, caller)
    }

    /// What is next after a turn of which this is known: whether there is another one.
    fn after(
        &mut self,
        again: Truth,
        state: Vec<Value>,
        names: &[&'static str],
        caller: &'static Location<'static>,
    ) -> Result<bool> {
        let (next, is_body) = match (self.open.take(), again) {
            (Some(turning), again) => (turning.end(again, state, &named(names))?, false),
            (None, Truth::Traced(go)) => {
                let (turning, state) = Turning::begin(go, state, caller)?;
                self.open = Some(Box::new(turning));
                (state, true)
            }
            (None, Truth::Known(again)) => (state, again),
        };
        self.next = next.into_iter();
        Ok(is_body)
    }

    /// Joins the exits of a turn, or of a loop.
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

    /// Joins the exits of a turn of a `loop`; returns whether there is another turn.
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

/// Locals, with their names.
type Gathered = (Vec<Value>, Vec<&'static str>);

/// The names of the locals, for an error.
fn named(names: &[&'static str]) -> impl Fn(usize) -> String {
    move |at| match names.get(at) {
        Some(name) => format!("`{name}`"),
        None => "the state".to_string(),
    }
}

/// At the head of a loop, or at the end of its turn: a local as it is.
#[inline(always)]
pub fn gather<K: Kind, T: Local<K>>(turns: &mut Turns<K>, local: &T, name: &'static str) {
    turns.names.push(name);
    turns.state.push(T::save(local));
}

/// A local as any turn finds it, or as the turn or the loop leaves it.
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

/// What decides at several places of a loop: a traced value, if one does at any of them.
pub struct KindOf<K>(PhantomData<K>);

impl<K> Clone for KindOf<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for KindOf<K> {}

impl<K> Default for KindOf<K> {
    #[inline(always)]
    fn default() -> Self {
        KindOf(PhantomData)
    }
}

impl<K: Kind> KindOf<K> {
    /// It is what decides here.
    #[inline(always)]
    pub fn is_of(&self, _: &Fork<K>) {}

    /// It is what decides at the end of a turn.
    #[inline(always)]
    pub fn is_for(&self, _: &Turns<K>) {}

    /// Either of the two.
    #[inline(always)]
    pub fn or<B: Kind>(&self, _: &KindOf<B>) -> KindOf<<K as Or<B>>::Kind>
    where
        K: Or<B>,
    {
        KindOf::default()
    }
}
