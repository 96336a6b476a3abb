//! Conditions: what a branch or a loop may depend on, and whether its truth is known while tracing.

use std::panic::Location;

use super::kind::{Kind, Plain, Symbolic};
use crate::error::Result;
use crate::trace::ask::decided;
use crate::value::handle::Proxy;
use crate::value::object::{Object, Traced};
use crate::value::symbol::{Bool, Sym};
use crate::value::value::Value;

/// What decides a branch: a `bool`, a [`Bool`], a tensor of one element, a reference to one of these,
/// or the `Result` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide a branch",
    label = "expected a `bool`, a `Bool`, a tensor of one element, or the `Result` of a comparison"
)]
pub trait Decide {
    /// Whether it can be traced.
    #[doc(hidden)]
    type Kind: Kind;

    /// Its truth, if it is known.
    ///
    /// # Errors
    /// Returns an error if it failed, or is neither true nor false: a tensor of several elements.
    fn decide(self) -> Result<Truth>;
}

/// The truth of a condition.
#[derive(Debug, Clone, Copy)]
pub enum Truth {
    /// Known now: no node is recorded for the choice.
    Known(bool),
    /// Known when the graph runs.
    Traced(Proxy),
}

impl Truth {
    /// Asks the tracer, which may know.
    pub(super) fn or_tracers(self, caller: &'static Location<'static>) -> Result<Self> {
        match self {
            Truth::Known(_) => Ok(self),
            Truth::Traced(proxy) => Ok(decided(proxy, caller)?.map_or(self, Truth::Known)),
        }
    }
}

impl Decide for bool {
    type Kind = Plain;

    #[inline(always)]
    fn decide(self) -> Result<Truth> {
        Ok(Truth::Known(self))
    }
}

impl Decide for Bool {
    type Kind = Symbolic;

    fn decide(self) -> Result<Truth> {
        Ok(match self {
            Sym::Concrete(known) => Truth::Known(known),
            Sym::Proxy(proxy) => Truth::Traced(proxy),
        })
    }
}

impl<T: Traced> Decide for T {
    type Kind = Symbolic;

    fn decide(self) -> Result<Truth> {
        match self.proxy() {
            Some(proxy) => Ok(Truth::Traced(proxy)),
            None => Object::truth(&self).map(Truth::Known),
        }
    }
}

/// The condition behind a reference.
macro_rules! behind_references {
    ($($condition:ty)*) => {$(
        impl Decide for &$condition {
            type Kind = <$condition as Decide>::Kind;

            #[inline(always)]
            fn decide(self) -> Result<Truth> {
                (*self).decide()
            }
        }
    )*};
}

behind_references! { bool Bool }

impl Decide for &Value {
    type Kind = Symbolic;

    fn decide(self) -> Result<Truth> {
        self.clone().decide()
    }
}

impl Decide for Value {
    type Kind = Symbolic;

    fn decide(self) -> Result<Truth> {
        match self.as_proxy() {
            Some(proxy) => Ok(Truth::Traced(proxy)),
            None => self.truth().map(Truth::Known),
        }
    }
}

impl<C: Decide> Decide for Result<C> {
    type Kind = C::Kind;

    fn decide(self) -> Result<Truth> {
        self?.decide()
    }
}
