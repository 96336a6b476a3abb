//! `x.i(..)`: the forms of an index, as a user writes it and as a graph holds it.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use fx_core::tensor::{CallForm, Traced, record_call};
use fx_core::value::{Int, IntoValue, Value};
use fx_core::{Error, Result, operator};

use super::Tensor;
use crate::error::Fx;
use crate::kernels::index::{Part, index};

/// All dims that the rest of an index does not name: `x.i((Ellipsis, -1))` is PyTorch's
/// `x[..., -1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ellipsis;

/// A new dim of size 1: PyTorch's `x[:, None]` is `x.i((.., NewAxis))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewAxis;

/// A slice with a step: `every(2)` is PyTorch's `::2`, `every(2).of(1..9)` its `1:9:2`.
pub fn every(step: impl Into<Int>) -> Slice {
    Slice([Value::None, Value::None, step.into().into_value()])
}

/// A slice of a dim: a range, or [`every`] with a step.
#[derive(Debug, Clone)]
pub struct Slice([Value; 3]);

impl Slice {
    /// The same step over a range.
    #[must_use]
    pub fn of(self, range: impl Into<Slice>) -> Slice {
        let [start, stop, _] = range.into().0;
        let [_, _, step] = self.0;
        Slice([start, stop, step])
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Slice([Value::None, Value::None, Value::None])
    }
}

macro_rules! ranges {
    ($($t:ty),*) => {$(
        impl From<Range<$t>> for Slice {
            fn from(range: Range<$t>) -> Self {
                let end = |n: $t| Int::from(n).into_value();
                Slice([end(range.start), end(range.end), Value::None])
            }
        }
        impl From<RangeFrom<$t>> for Slice {
            fn from(range: RangeFrom<$t>) -> Self {
                Slice([Int::from(range.start).into_value(), Value::None, Value::None])
            }
        }
        impl From<RangeTo<$t>> for Slice {
            fn from(range: RangeTo<$t>) -> Self {
                Slice([Value::None, Int::from(range.end).into_value(), Value::None])
            }
        }
        indices! { Range<$t>, RangeFrom<$t>, RangeTo<$t> }
    )*};
}

/// The argument of [`Tensor::i`]: a position, a range, [`every`], [`NewAxis`], [`Ellipsis`], and
/// tuples of these.
#[diagnostic::on_unimplemented(
    message = "a tensor cannot be indexed by `{Self}`",
    label = "expected a position, a range, `every(2)`, `NewAxis`, `Ellipsis` or a tuple of these",
    note = "PyTorch's `x[:, None]` is `x.i((.., NewAxis))`, its `x[..., -1]` is `x.i((Ellipsis, -1))`"
)]
pub trait Index {
    /// The index as a graph holds it.
    fn into_index(self) -> Value;
}

macro_rules! indices {
    ($($t:ty),*) => {$(
        impl Index for $t {
            fn into_index(self) -> Value {
                Value::Slice(Box::new(Slice::from(self).0))
            }
        }
    )*};
}

macro_rules! positions {
    ($($t:ty),*) => {$(
        impl Index for $t {
            fn into_index(self) -> Value {
                Int::from(self).into_value()
            }
        }
    )*};
}

positions!(i32, i64, usize, Int);
indices!(RangeFull, Slice);
ranges!(i32, i64, usize, Int);

impl Index for Ellipsis {
    fn into_index(self) -> Value {
        Value::Ellipsis
    }
}

impl Index for NewAxis {
    fn into_index(self) -> Value {
        Value::None
    }
}

/// The most parts of an index.
pub(super) const MOST_PARTS: usize = 12;

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Index),+> Index for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_index(self) -> Value {
                let ($($name,)+) = self;
                Value::Tuple(Box::new([$($name.into_index()),+]))
            }
        }
    };
}
tuples! { A }
tuples! { A B }
tuples! { A B C }
tuples! { A B C D }
tuples! { A B C D E }
tuples! { A B C D E F }
tuples! { A B C D E F G }
tuples! { A B C D E F G H }
tuples! { A B C D E F G H I }
tuples! { A B C D E F G H I J }
tuples! { A B C D E F G H I J K }
tuples! { A B C D E F G H I J K L }

impl Tensor {
    /// A part of the tensor, PyTorch's `x[index]`: a position removes a dim, a range keeps it.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// let x = Tensor::from_vec((0..24).map(|n| n as f32).collect(), (2, 3, 4))?;
    /// assert_eq!(x.i(1)?.dims()?, [3, 4]);
    /// assert_eq!(x.i((.., 1..3, NewAxis, Ellipsis))?.dims()?, [2, 2, 1, 4]);
    /// assert_eq!(x.i((0, 0, every(2)))?.to_vec()?, [0.0, 2.0]);
    /// assert_eq!(x.i((Ellipsis, -1))?.dims()?, [2, 3]);
    ///
    /// // Sizes of a traced tensor can stand in it, beside plain numbers where the body is traced.
    /// let middle = traced!(|x: &Tensor| x.i((.., 1..x.size(1)?)));
    /// let gm = symbolic_trace(middle)?;
    /// assert_eq!(gm.forward::<Tensor>(&x)?.dims()?, [2, 2, 4]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there are more parts than dims, or a position is outside its dim.
    #[track_caller]
    pub fn i(&self, index: impl Index) -> Result<Tensor> {
        self.indexed(index.into_index())
    }

    /// What `i` does, compiled once for all forms of an index.
    #[track_caller]
    fn indexed(&self, index: Value) -> Result<Tensor> {
        if self.has_no_data() || fx_core::tensor::may_record() || index.holds_proxy() {
            let args = vec![self.into_value(), index.clone()];
            if let Some(part) = record_call(operator::getitem, CallForm::Function, args)? {
                return fx_core::trace::FromValue::from_value(part);
            }
        }
        self.getitem(&index)
    }

    /// `x[index]` for an index from a graph.
    pub(super) fn getitem(&self, at: &Value) -> Result<Tensor> {
        let data = self.elements("getitem")?;
        let parts = match at {
            Value::Tuple(parts) => parts.iter().map(part).collect::<Result<Vec<_>>>()?,
            one => vec![part(one)?],
        };
        let found = index(data, &parts).fx()?;
        Ok(self.with_data(found))
    }
}

fn part(value: &Value) -> Result<Part> {
    let end = |value: &Value| match value {
        Value::None => Ok(None),
        Value::Int(n) => Ok(Some(*n)),
        other => Err(Error::expected("an end of a slice", other.describe())),
    };
    Ok(match value {
        Value::Int(i) => Part::At(*i),
        Value::None => Part::NewAxis,
        Value::Ellipsis => Part::Ellipsis,
        Value::Slice(ends) => {
            let [start, stop, step] = &**ends;
            Part::Slice(end(start)?, end(stop)?, end(step)?.unwrap_or(1))
        }
        other => {
            return Err(Error::msg(format_args!(
                "getitem: a tensor cannot be indexed by {}: use positions, ranges, NewAxis and Ellipsis",
                other.describe()
            )));
        }
    })
}
