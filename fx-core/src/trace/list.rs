//! `List`: results of a call that returns any number of values, known, or symbolic and taken by
//! index.

use std::fmt;
use std::marker::PhantomData;

use super::blame::escape;
use super::call_args::CallForm;
use super::convert::{FromValue, Output, Param};
use super::dispatch;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::operator;
use crate::ir::param_type::{ParamType, TypePart};
use crate::value::handle::Proxy;
use crate::value::symbol::{Int, Sym};
use crate::value::value::{Arg, IntoValue, Value};

/// A list whose length a trace does not know: the result of a leaf such as `split`.
///
/// ```
/// use fx_core::trace::List;
/// use fx_core::prelude::*;
///
/// #[wrap]
/// fn divisors(n: Int) -> Result<List<Int>> {
///     let n = n.concrete().unwrap_or(0);
///     Ok((1..=n).filter(|d| n % d == 0).map(Int::from).collect::<Vec<_>>().into())
/// }
/// let second = traced!(|n: Int| divisors(n)?.get(1)? * 10);
/// let gm = symbolic_trace(second)?;
/// assert_eq!(gm.forward::<i64>(9)?, 30);
/// # Ok::<(), Error>(())
/// ```
pub struct List<T>(Items<T>);

enum Items<T> {
    Known(Vec<T>),
    /// The function pointer makes it `Send + Sync` whatever `T` is.
    Symbolic(Proxy, PhantomData<fn() -> T>),
}

impl<T: FromValue + Clone> List<T> {
    /// The item at a position; a negative one counts from the end.
    ///
    /// # Errors
    /// Returns an error if a known list has no such item, or the position is symbolic and the list
    /// is not.
    #[track_caller]
    pub fn get(&self, index: impl Into<Int>) -> Result<T> {
        let index = index.into();
        match (&self.0, index) {
            (Items::Symbolic(proxy, _), index) => proxy.getitem(index)?.to(),
            (Items::Known(items), Sym::Concrete(index)) => {
                let at = if index < 0 {
                    index.checked_add_unsigned(items.len() as u64)
                } else {
                    Some(index)
                };
                at.and_then(|at| usize::try_from(at).ok())
                    .and_then(|at| items.get(at))
                    .cloned()
                    .ok_or_else(|| {
                        Error::from(ErrorKind::Index {
                            index,
                            container: format!("a list of {}", items.len()),
                        })
                    })
            }
            (Items::Known(_), Sym::Proxy(proxy)) => Err(escape("List::get", proxy)),
        }
    }

    /// Exactly `N` items; of a symbolic list its first `N`, each taken by index.
    ///
    /// # Errors
    /// Returns an error if a known list has another length.
    #[track_caller]
    pub fn unpack<const N: usize>(&self) -> Result<[T; N]> {
        match &self.0 {
            Items::Symbolic(proxy, _) => proxy.to(),
            Items::Known(items) => <[T; N]>::try_from(items.clone())
                .map_err(|items| Error::expected(format_args!("a list of {N}"), items.len())),
        }
    }

    /// The items from `start` to before `stop`, counted from the end if negative; `None` is the
    /// list's own end.
    ///
    /// ```
    /// use fx_core::trace::List;
    /// let sizes: List<i64> = vec![2, 3, 8].into();
    /// assert_eq!(sizes.slice(None, -1)?.concat(vec![4, 2])?.unpack()?, [2, 3, 4, 2]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the list is symbolic and its trace is not running here.
    #[track_caller]
    pub fn slice(
        &self,
        start: impl Into<Option<i64>>,
        stop: impl Into<Option<i64>>,
    ) -> Result<List<T>> {
        let (start, stop) = (start.into(), stop.into());
        let items = match &self.0 {
            Items::Known(items) => items,
            Items::Symbolic(proxy, _) => {
                let end = |at: Option<i64>| at.map_or(Value::None, Value::Int);
                let ends = [end(start), end(stop), Value::None];
                return proxy.getitem(Value::Slice(Box::new(ends)))?.to();
            }
        };
        let place = |at: i64| {
            let at = if at < 0 {
                at.saturating_add_unsigned(items.len() as u64)
            } else {
                at
            };
            usize::try_from(at).unwrap_or(0).min(items.len())
        };
        let (start, stop) = (start.map_or(0, place), stop.map_or(items.len(), place));
        let part = items.get(start..stop).unwrap_or(&[]);
        Ok(part.to_vec().into())
    }

    /// All items.
    ///
    /// # Errors
    /// Returns an error if the list is symbolic, and its tracer does not know the number of items.
    #[track_caller]
    pub fn iter(&self) -> Result<std::vec::IntoIter<T>> {
        let items = match &self.0 {
            Items::Known(items) => items.clone(),
            Items::Symbolic(proxy, _) => proxy.iter()?.map(Proxy::to).collect::<Result<_>>()?,
        };
        Ok(items.into_iter())
    }
}

impl<T: FromValue + IntoValue + Clone> List<T> {
    /// These items, then others: Python's `list + other`.
    ///
    /// # Errors
    /// Returns an error if either is symbolic and its trace is not running here.
    #[track_caller]
    pub fn concat(&self, other: impl Into<List<T>>) -> Result<List<T>> {
        let other = other.into();
        if let (Items::Known(items), Items::Known(more)) = (&self.0, &other.0) {
            return Ok(items.iter().chain(more).cloned().collect());
        }
        let args = vec![self.clone().into_value(), other.into_value()];
        let joined = dispatch::call_values(operator::add, CallForm::Function, args)?;
        List::from_value(joined)
    }
}

impl<T> List<T> {
    /// The number of items, if it is known. If it is not, the trace's report has that answer.
    #[track_caller]
    pub fn known_len(&self) -> Option<usize> {
        match &self.0 {
            Items::Known(items) => Some(items.len()),
            Items::Symbolic(proxy, _) => {
                proxy.note_answer("known_len", "None");
                None
            }
        }
    }

    /// The known items: none of a symbolic list, which the trace's report shows.
    #[track_caller]
    pub fn known(&self) -> &[T] {
        match &self.0 {
            Items::Known(items) => items,
            Items::Symbolic(proxy, _) => {
                proxy.note_answer("known", "[]");
                &[]
            }
        }
    }

    /// The symbolic list, for code that records what is done to it. The question is in no report.
    pub fn proxy(&self) -> Option<Proxy> {
        match &self.0 {
            Items::Known(_) => None,
            Items::Symbolic(proxy, _) => Some(*proxy),
        }
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        List(Items::Known(items))
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        List(Items::Known(items.into_iter().collect()))
    }
}

impl<T: Clone> Clone for List<T> {
    fn clone(&self) -> Self {
        List(match &self.0 {
            Items::Known(items) => Items::Known(items.clone()),
            Items::Symbolic(proxy, _) => Items::Symbolic(*proxy, PhantomData),
        })
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Items::Known(items) => items.fmt(f),
            Items::Symbolic(proxy, _) => write!(f, "{proxy}"),
        }
    }
}

impl<T: IntoValue> IntoValue for List<T> {
    fn into_value(self) -> Value {
        match self.0 {
            Items::Known(items) => items.into_value(),
            Items::Symbolic(proxy, _) => Value::Proxy(proxy),
        }
    }
}
impl<T: IntoValue> Arg for List<T> {}

impl<T: FromValue> FromValue for List<T> {
    const TYPE: ParamType = ParamType::List(TypePart::Fixed(&T::TYPE));

    fn from_value(value: Value) -> Result<Self> {
        Ok(match value {
            Value::Proxy(proxy) => List(Items::Symbolic(proxy, PhantomData)),
            value => List(Items::Known(Vec::from_value(value)?)),
        })
    }
}
impl<T: Output> Output for List<T> {}

impl<'v, T: FromValue + IntoValue + Clone + 'v> Param<'v> for List<T> {
    type Guard = List<T>;
    const TYPE: ParamType = <Self as FromValue>::TYPE;

    fn guard(value: &'v Value) -> Result<Self::Guard> {
        List::from_value(value.clone())
    }

    fn lend(guard: &'v Self::Guard) -> Self {
        guard.clone()
    }

    fn is_symbolic(&self) -> bool {
        self.to_value().holds_no_data()
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }
}

impl<'v, T: FromValue + IntoValue + Clone + 'v> Param<'v> for &'v List<T> {
    type Guard = List<T>;
    const TYPE: ParamType = ParamType::Reference(TypePart::Fixed(&<List<T> as FromValue>::TYPE));

    fn guard(value: &'v Value) -> Result<Self::Guard> {
        List::from_value(value.clone())
    }

    fn lend(guard: &'v Self::Guard) -> Self {
        guard
    }

    fn is_symbolic(&self) -> bool {
        self.to_value().holds_no_data()
    }

    fn to_value(&self) -> Value {
        (*self).clone().into_value()
    }
}
