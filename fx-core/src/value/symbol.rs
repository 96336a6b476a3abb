//! Scalars that are either concrete or symbolic: `Int`, `Float` and `Bool`.

use std::any::Any;
use std::fmt;

use super::handle::Proxy;
use super::value::{Arg, IntoValue, Value};

/// A scalar that is known, or is computed by a running trace.
#[derive(Debug, Clone, Copy)]
pub enum Sym<T> {
    /// A known value.
    Concrete(T),
    /// The result of a node.
    Proxy(Proxy),
}

/// An integer that may be symbolic, such as a size of a traced tensor.
pub type Int = Sym<i64>;
/// A float that may be symbolic.
pub type Float = Sym<f64>;
/// A boolean that may be symbolic.
pub type Bool = Sym<bool>;

impl<T: Copy + 'static> Sym<T> {
    /// The value, if it is known. A program that continues with `None` is traced that way, and the
    /// trace's [report](crate::trace::Trace::report) lists it.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// let f = traced!(|n: Int| Ok(if n.concrete() == Some(1) { n } else { (n * 2)? }));
    /// let report = Trace::new(f).report()?.to_string();
    /// assert!(report.starts_with("concrete of %n = None"));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn concrete(&self) -> Option<T> {
        match self {
            Sym::Concrete(value) => Some(*value),
            Sym::Proxy(proxy) => {
                let number = proxy.known_number();
                let known: Option<&dyn Any> = number.as_ref().map(|number| number as &dyn Any);
                if let Some(known) = known.and_then(|known| known.downcast_ref::<T>()) {
                    return Some(*known);
                }
                proxy.note_answer("concrete", "None");
                None
            }
        }
    }

    /// The proxy, if it is symbolic, for recording operations on it. Unlike
    /// [`concrete`](Sym::concrete), it is not reported.
    pub fn proxy(&self) -> Option<Proxy> {
        match self {
            Sym::Concrete(_) => None,
            Sym::Proxy(proxy) => Some(*proxy),
        }
    }
}

impl<T> From<T> for Sym<T> {
    fn from(value: T) -> Self {
        Sym::Concrete(value)
    }
}

impl From<i32> for Int {
    fn from(value: i32) -> Self {
        Sym::Concrete(value.into())
    }
}

impl From<usize> for Int {
    fn from(value: usize) -> Self {
        Sym::Concrete(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f32> for Float {
    fn from(value: f32) -> Self {
        Sym::Concrete(value.into())
    }
}

impl<T: IntoValue> IntoValue for Sym<T> {
    fn into_value(self) -> Value {
        match self {
            Sym::Concrete(value) => value.into_value(),
            Sym::Proxy(proxy) => Value::Proxy(proxy),
        }
    }
}
impl<T: IntoValue + Copy> IntoValue for &Sym<T> {
    fn into_value(self) -> Value {
        (*self).into_value()
    }
}

impl<T: IntoValue> Arg for Sym<T> {}

impl<T: fmt::Display> fmt::Display for Sym<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sym::Concrete(value) => value.fmt(f),
            Sym::Proxy(proxy) => proxy.fmt(f),
        }
    }
}
