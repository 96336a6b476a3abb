//! Questions that only a run can answer, such as truth, items and keys: a symbolic value asks its
//! tracer.

use std::panic::Location;
use std::sync::Arc;

use super::blame::asked;
use super::operand::binary;
use crate::error::{Error, Result};
use crate::value::handle::Proxy;
use crate::value::object::Traced;
use crate::value::operator::Operator;
use crate::value::symbol::{Bool, Sym};
use crate::value::value::Value;

/// The truth of a condition, if its tracer [knows](crate::trace::Tracer::branch) it.
pub(crate) fn decided(
    condition: Proxy,
    caller: &'static Location<'static>,
) -> Result<Option<bool>> {
    asked(condition, "branch", caller, |tracer, cx| {
        let answer = tracer.branch(cx, condition)?;
        Ok((answer, answer.map(|answer| answer.to_string())))
    })
}

impl Proxy {
    /// Its truth, from its tracer's [`to_bool`](crate::trace::Tracer::to_bool): an error unless the
    /// tracer knows better.
    ///
    /// # Errors
    /// Returns the tracer's error, or an error if the proxy's trace is not running here.
    #[track_caller]
    pub fn to_bool(self) -> Result<bool> {
        asked(self, "to_bool", Location::caller(), |tracer, cx| {
            let answer = tracer.to_bool(cx, self)?;
            Ok((answer, Some(answer.to_string())))
        })
    }

    /// Its items, from its tracer's [`iter`](crate::trace::Tracer::iter): an error unless the
    /// tracer knows the number.
    ///
    /// # Errors
    /// Returns the tracer's error, or an error if the proxy's trace is not running here.
    #[track_caller]
    pub fn iter(self) -> Result<std::vec::IntoIter<Proxy>> {
        asked(self, "iter", Location::caller(), |tracer, cx| {
            let items = tracer.iter(cx, self)?;
            let answer = format!("{} items", items.len());
            Ok((items.into_iter(), Some(answer)))
        })
    }

    /// Its keys, from its tracer's [`keys`](crate::trace::Tracer::keys): an error unless the tracer
    /// knows them.
    ///
    /// # Errors
    /// Returns the tracer's error, or an error if the proxy's trace is not running here.
    #[track_caller]
    pub fn keys(self) -> Result<std::vec::IntoIter<Arc<str>>> {
        asked(self, "keys", Location::caller(), |tracer, cx| {
            let keys = tracer.keys(cx, self)?;
            let answer = format!("{keys:?}");
            Ok((keys.into_iter(), Some(answer)))
        })
    }
}

impl Value {
    /// Its items: of a list or tuple, or of a symbolic value if the tracer knows the number.
    ///
    /// # Errors
    /// Returns an error if it has none, or the tracer does not know.
    #[track_caller]
    pub fn iter(&self) -> Result<std::vec::IntoIter<Value>> {
        match self {
            Value::List(items) | Value::Tuple(items) => Ok(items.clone().into_vec().into_iter()),
            value => match value.as_proxy() {
                Some(proxy) => {
                    let items: Vec<Value> = proxy.iter()?.map(Value::Proxy).collect();
                    Ok(items.into_iter())
                }
                None => Err(Error::expected("a list or a tuple", value.describe())),
            },
        }
    }

    /// Its keys: of a dict, or of a symbolic value if the tracer knows them.
    ///
    /// # Errors
    /// Returns an error if it has none, or the tracer does not know.
    #[track_caller]
    pub fn keys(&self) -> Result<std::vec::IntoIter<Arc<str>>> {
        match self {
            Value::Dict(map) => Ok(map.keys().cloned().collect::<Vec<_>>().into_iter()),
            value => match value.as_proxy() {
                Some(proxy) => proxy.keys(),
                None => Err(Error::expected("a dict", value.describe())),
            },
        }
    }
}

impl Bool {
    /// Its truth; a symbolic one asks its tracer.
    ///
    /// # Errors
    /// Returns an error if it is symbolic and the tracer does not know.
    #[track_caller]
    pub fn to_bool(self) -> Result<bool> {
        match self {
            Sym::Concrete(truth) => Ok(truth),
            Sym::Proxy(proxy) => proxy.to_bool(),
        }
    }
}

/// Questions that known tensors answer, and symbolic ones pass on to their tracer.
///
/// ```
/// use std::sync::Arc;
/// use fx_core::prelude::*;
/// use fx_core::trace::{TraceContext, Tracer};
/// use fx_core::value::Proxy;
///
/// /// Knows that every list in this program has three items.
/// struct Three;
/// impl Tracer for Three {
///     fn iter(&self, cx: &TraceContext, proxy: Proxy) -> Result<Vec<Proxy>> {
///         self.create_items(cx, proxy, 3)
///     }
/// }
/// let reversed = traced!(|x: Value| {
///     let mut items: Vec<Value> = x.iter()?.collect();
///     items.reverse();
///     Ok(items)
/// });
/// let gm = Trace::new(reversed).tracer(Three).graph_module()?;
/// let y: Vec<i64> = gm.forward(vec![1, 2, 3])?;
/// assert_eq!(y, [3, 2, 1]);
/// # Ok::<(), fx_core::Error>(())
/// ```
pub trait TracedExt: Traced {
    /// Its truth.
    ///
    /// # Errors
    /// Returns an error if it has not exactly one element, or is symbolic and the tracer does not
    /// know.
    #[track_caller]
    fn to_bool(&self) -> Result<bool> {
        match self.proxy() {
            Some(proxy) => proxy.to_bool(),
            None => self.truth(),
        }
    }

    /// Its items along the first dim.
    ///
    /// # Errors
    /// Returns an error if it has no dims, or is symbolic and the tracer does not know the number.
    #[track_caller]
    fn iter(&self) -> Result<std::vec::IntoIter<Self>> {
        let items = match self.proxy() {
            Some(proxy) => proxy.iter()?.map(Self::from_proxy).collect(),
            None => {
                let shape = self.shape().unwrap_or_default();
                let Some(count) = shape.first() else {
                    return Err(Error::msg("iteration over a tensor without dims"));
                };
                let items = (0..*count).map(|i| {
                    let index = i64::try_from(i).unwrap_or(i64::MAX);
                    binary(Operator::Getitem, &self, &index)
                });
                items.collect::<Result<Vec<_>>>()?
            }
        };
        Ok(items.into_iter())
    }
}

impl<T: Traced> TracedExt for T {}
