//! What `#[trace(control_flow)]` writes for an early `return`.
//!
//! Invariant: what follows an early `return`, to the end of the function, is its other branch; the
//! latest one ends first.

use super::if_region::{Fork, Given, TracedFork};
use super::kind::{Kind, Plain, Symbolic};
use crate::error::Result;

/// The early `return`s of a function that traced values decide: what follows each, to the end of the
/// function, is its other branch.
pub struct EarlyReturns<R> {
    pending: Vec<TracedFork>,
    join: Option<Join<R>>,
}

/// Ends the second branch of an early `return`.
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
        let mut traced = K::into_traced(traced).into_return();
        traced.leave(value)?;
        if let Some(recorder) = traced.recorder_mut() {
            recorder.becomes("return");
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
        match (K::into_traced(traced).into_exit().0, value.words()) {
            (Some(recorder), Some(words)) => recorder.refuse(&words),
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
