//! Locals that a region mentions and does not assign: their methods may change them.
//!
//! Invariant: what a graph can hold is carried as an assigned local is; plain data is the same after
//! a region as before it, or the trace fails.

use std::convert::Infallible;
use std::marker::PhantomData;

use super::break_continue::note;
use super::if_region::{Fork, keep, settle, turn};
use super::kind::{HasKind, Kind, Plain, Symbolic};
use super::loop_state::{LoopState, gather, put};
use crate::error::Result;
use crate::trace::convert::Output;

/// A local, by what decides where it is mentioned. The compiler takes the first of these that it is:
/// any local where a plain `bool` decides, a value that a graph can hold, plain data, anything else.
/// They are implemented for references of falling depth, which is the order in which methods are found.
pub struct Mentioned<K, T>(PhantomData<K>, PhantomData<T>);

/// A local at a place where this decides.
#[inline(always)]
pub fn mentioned<P: HasKind, T>(_: &P, _: &T) -> Mentioned<P::Kind, T> {
    Mentioned(PhantomData, PhantomData)
}

/// How a local goes through a region: by default it is left as it is.
pub trait Carry<K: Kind, T> {
    /// Before a branch.
    #[doc(hidden)]
    #[inline(always)]
    fn keep(&self, _: &mut Fork<K>, _: &T, _: &'static str) {}

    /// After a branch.
    #[doc(hidden)]
    #[inline(always)]
    fn turn(&self, _: &mut Fork<K>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }

    /// After both branches.
    #[doc(hidden)]
    #[inline(always)]
    fn settle(&self, _: &mut Fork<K>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }

    /// At an exit of a loop.
    #[doc(hidden)]
    #[inline(always)]
    fn note(&self, _: &mut Fork<K>, _: &T, _: &'static str) {}

    /// At the head of a loop, or at the end of an iteration.
    #[doc(hidden)]
    #[inline(always)]
    fn gather(&self, _: &mut LoopState<K>, _: &T, _: &'static str) {}

    /// As an iteration finds it, or the loop leaves it.
    #[doc(hidden)]
    #[inline(always)]
    fn put(&self, _: &mut LoopState<K>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
}

/// Where a plain `bool` decides.
impl<T> Carry<Plain, T> for &&&Mentioned<Plain, T> {}

/// A value that a graph can hold: it is carried as an assigned local is.
impl<T: Output + Clone> Carry<Symbolic, T> for &&Mentioned<Symbolic, T> {
    fn keep(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        keep(fork, local, name);
    }

    fn turn(&self, fork: &mut Fork<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        turn(fork, local)
    }

    fn settle(&self, fork: &mut Fork<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        settle(fork, local)
    }

    fn note(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        note(fork, local, name);
    }

    fn gather(&self, state: &mut LoopState<Symbolic>, local: &T, name: &'static str) {
        gather(state, local, name);
    }

    fn put(&self, state: &mut LoopState<Symbolic>, local: &mut T, _: &'static str) -> Result<()> {
        put(state, local)
    }
}

/// Plain data: it is compared with what it was.
impl<T: Clone + PartialEq + 'static> Carry<Symbolic, T> for &Mentioned<Symbolic, T> {
    fn keep(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        if let Some(traced) = fork.traced_mut() {
            traced.held.hold(name, local);
        }
    }

    fn turn(&self, fork: &mut Fork<Symbolic>, local: &mut T, name: &'static str) -> Result<()> {
        let traced = fork.traced_mut();
        traced.map_or(Ok(()), |traced| traced.held.check(name, local))
    }

    fn note(&self, fork: &mut Fork<Symbolic>, local: &T, name: &'static str) {
        if let Some(traced) = fork.traced_mut() {
            traced.held.hold_first(name, local);
        }
    }

    fn gather(&self, state: &mut LoopState<Symbolic>, local: &T, name: &'static str) {
        if state.holds() {
            state.held.hold(name, local);
        }
    }

    fn put(
        &self,
        state: &mut LoopState<Symbolic>,
        local: &mut T,
        name: &'static str,
    ) -> Result<()> {
        state.held.check(name, local)
    }
}

/// What a region may mention though its methods could change it: nothing has it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is used where a traced value decides, and may change there",
    label = "neither a value that a graph holds, nor plain data that can be compared",
    note = "borrow it before the branch or the loop: `let it = &it;`"
)]
pub trait Steady {}

/// Anything else: an error, as soon as a region mentions it.
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
    fn gather(&self, _: &mut LoopState<Symbolic>, _: &T, _: &'static str)
    where
        T: Steady,
    {
    }
    #[doc(hidden)]
    fn put(&self, _: &mut LoopState<Symbolic>, _: &mut T, _: &'static str) -> Result<()> {
        Ok(())
    }
}

impl<T> AsOther<T> for Mentioned<Symbolic, T> {}

/// A local that a branch moves, where it is needed once more: the branch moves a copy.
pub struct Copied<T>(T);

/// A local that a branch moves, as plain Rust has it.
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

impl<T> MovesPlain<T> for &&Mentioned<Plain, T> {}

/// What can be copied.
pub trait MovesCopy<T: Clone> {
    #[doc(hidden)]
    #[inline(always)]
    fn moved(&self, local: &T) -> Copied<T> {
        Copied(local.clone())
    }
}

impl<T: Clone> MovesCopy<T> for &Mentioned<Symbolic, T> {}

/// Anything else.
pub trait MovesIt<T> {
    #[doc(hidden)]
    #[inline(always)]
    fn moved(&self, _: &T) -> Moved<T> {
        Moved(PhantomData)
    }
}

impl<T> MovesIt<T> for Mentioned<Symbolic, T> {}
