//! Locals that a region mentions and does not assign: their methods may change them.
//!
//! Invariant: what a graph can hold is carried as an assigned local is; plain data is the same after
//! a region as before it, or the trace fails.

use std::any::Any;
use std::convert::Infallible;
use std::marker::PhantomData;

use indexmap::IndexMap;

use super::exits::note;
use super::gate::{Fork, Kind, Plain, Symbolic, keep, settle, turn};
use super::turns::{KindOf, Turns, gather, put};
use crate::error::{Error, Result};
use crate::trace::convert::Output;

/// Plain data as it was before a region.
#[derive(Default)]
pub struct Held(IndexMap<&'static str, Box<dyn Any>>);

impl Held {
    fn hold<T: Clone + 'static>(&mut self, name: &'static str, local: &T) {
        self.0.insert(name, Box::new(local.clone()));
    }

    fn hold_first<T: Clone + 'static>(&mut self, name: &'static str, local: &T) {
        let entry = self.0.entry(name);
        entry.or_insert_with(|| Box::new(local.clone()));
    }

    /// Keeps what was held first.
    pub(super) fn join(&mut self, other: &mut Held) {
        for (name, data) in other.0.drain(..) {
            self.0.entry(name).or_insert(data);
        }
    }

    fn check<T: PartialEq + 'static>(&self, name: &str, now: &T) -> Result<()> {
        let before = self.0.get(name);
        match before.and_then(|before| before.downcast_ref::<T>()) {
            Some(before) if before != now => Err(Error::msg(format_args!(
                "`{name}` is plain data and changes where a traced value decides: the graph cannot change it when it runs"
            ))),
            _ => Ok(()),
        }
    }
}

/// A local; which of the traits below has its functions depends on what it is.
pub struct Touched<K, T>(PhantomData<K>, PhantomData<T>);

/// What decides at a place.
pub trait Place {
    #[doc(hidden)]
    type Kind: Kind;
}

impl<K: Kind> Place for Fork<K> {
    type Kind = K;
}

impl<K: Kind> Place for Turns<K> {
    type Kind = K;
}

impl<K: Kind> Place for KindOf<K> {
    type Kind = K;
}

/// Written for such a local.
#[inline(always)]
pub fn touched<P: Place, T>(_: &P, _: &T) -> Touched<P::Kind, T> {
    Touched(PhantomData, PhantomData)
}

/// Where a plain `bool` decides.
#[rustfmt::skip]
pub trait AsPlain<T> {
    #[inline(always)]
    fn keep(&self, _: &mut Fork<Plain>, _: &T, _: &'static str) {}
    #[inline(always)]
    fn turn(&self, _: &mut Fork<Plain>, _: &mut T, _: &'static str) -> Result<()> { Ok(()) }
    #[inline(always)]
    fn settle(&self, _: &mut Fork<Plain>, _: &mut T, _: &'static str) -> Result<()> { Ok(()) }
    #[inline(always)]
    fn note(&self, _: &mut Fork<Plain>, _: &T, _: &'static str) {}
    #[inline(always)]
    fn gather(&self, _: &mut Turns<Plain>, _: &T, _: &'static str) {}
    #[inline(always)]
    fn put(&self, _: &mut Turns<Plain>, _: &mut T, _: &'static str) -> Result<()> { Ok(()) }
}

impl<T> AsPlain<T> for &&&Touched<Plain, T> {}

/// What a graph can hold.
pub trait AsValue<T: Output + Clone> {
    #[doc(hidden)]
    fn keep(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        keep(fork, local, name);
    }
    #[doc(hidden)]
    fn turn(&self, fork: &mut Fork<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        turn(fork, local)
    }
    #[doc(hidden)]
    fn settle(&self, fork: &mut Fork<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        settle(fork, local)
    }
    #[doc(hidden)]
    fn note(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        note(fork, local, name);
    }
    #[doc(hidden)]
    fn gather(&self, turns: &mut Turns<Symbolic>, local: &T, name: &'static str) {
        gather(turns, local, name);
    }
    #[doc(hidden)]
    fn put(&self, turns: &mut Turns<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        put(turns, local)
    }
}

impl<T: Output + Clone> AsValue<T> for &&Touched<Symbolic, T> {}

/// Plain data.
pub trait AsData<T: Clone + PartialEq + 'static> {
    #[doc(hidden)]
    fn keep(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        if let Some(traced) = fork.traced_mut() {
            traced.held.hold(name, local);
        }
    }
    #[doc(hidden)]
    fn turn(&self, fork: &mut Fork<Symbolic>, local: &mut T, name: &'static str) -> Result<()> {
        let traced = fork.traced_mut();
        traced.map_or(Ok(()), |traced| traced.held.check(name, local))
    }
    #[doc(hidden)]
    fn settle(&self, _: &mut Fork<Symbolic>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
    #[doc(hidden)]
    fn note(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        if let Some(traced) = fork.traced_mut() {
            traced.held.hold_first(name, local);
        }
    }
    #[doc(hidden)]
    fn gather(&self, turns: &mut Turns<Symbolic>, local: &T, name: &'static str) {
        if turns.holds() {
            turns.held.hold(name, local);
        }
    }
    #[doc(hidden)]
    fn put(&self, turns: &mut Turns<Symbolic>, local: &mut T, name: &'static str) -> Result<()> {
        turns.held.check(name, local)
    }
}

impl<T: Clone + PartialEq + 'static> AsData<T> for &Touched<Symbolic, T> {}

/// What a region may mention though its methods could change it: nothing has it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is used where a traced value decides, and may change there",
    label = "neither a value that a graph holds, nor plain data that can be compared",
    note = "borrow it before the branch or the loop: `let it = &it;`"
)]
pub trait Steady {}

/// Anything else.
pub trait AsOther<T> {
    #[doc(hidden)]
    fn keep(&self, _: &mut Fork<Symbolic>, _: &T, _: &'static str)
    where
        T: Steady,
    {
    }
    #[doc(hidden)]
    fn turn(&self, _: &mut Fork<Symbolic>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
    #[doc(hidden)]
    fn settle(&self, _: &mut Fork<Symbolic>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
    #[doc(hidden)]
    fn note(&self, _: &mut Fork<Symbolic>, _: &T, _: &'static str)
    where
        T: Steady,
    {
    }
    #[doc(hidden)]
    fn gather(&self, _: &mut Turns<Symbolic>, _: &T, _: &'static str)
    where
        T: Steady,
    {
    }
    #[doc(hidden)]
    fn put(&self, _: &mut Turns<Symbolic>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
}

impl<T> AsOther<T> for Touched<Symbolic, T> {}

/// A local that a side moves, where it is needed once more: the side moves a copy.
pub struct Copied<T>(T);

/// A local that a side moves, as plain Rust has it.
pub struct Moved<T>(PhantomData<T>);

impl<T> Copied<T> {
    /// Whether the copy is moved.
    #[inline(always)]
    pub fn is_copy(&self) -> bool {
        true
    }

    /// The copy.
    #[inline(always)]
    pub fn copy(self) -> T {
        self.0
    }

    /// Stands before what moves the local itself: never for a copy.
    #[inline(always)]
    pub fn token(&self) -> Infallible {
        unreachable!("the copy is moved")
    }
}

impl<T> Moved<T> {
    /// Whether the copy is moved.
    #[inline(always)]
    pub fn is_copy(&self) -> bool {
        false
    }

    /// The copy, which there is none of.
    #[inline(always)]
    pub fn copy(self) -> T {
        unreachable!("the local is moved")
    }

    /// Stands before what moves the local itself.
    #[inline(always)]
    pub fn token(&self) {}
}

/// Where a plain `bool` decides.
pub trait MovesPlain<T> {
    #[doc(hidden)]
    #[inline(always)]
    fn moved(&self, _: &T) -> Moved<T> {
        Moved(PhantomData)
    }
}

impl<T> MovesPlain<T> for &&Touched<Plain, T> {}

/// What can be copied.
pub trait MovesCopy<T: Clone> {
    #[doc(hidden)]
    #[inline(always)]
    fn moved(&self, local: &T) -> Copied<T> {
        Copied(local.clone())
    }
}

impl<T: Clone> MovesCopy<T> for &Touched<Symbolic, T> {}

/// Anything else.
pub trait MovesIt<T> {
    #[doc(hidden)]
    #[inline(always)]
    fn moved(&self, _: &T) -> Moved<T> {
        Moved(PhantomData)
    }
}

impl<T> MovesIt<T> for Touched<Symbolic, T> {}
