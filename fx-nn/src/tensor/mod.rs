//! `Tensor`: a candle tensor, or the symbolic value of a running trace, with PyTorch's semantics.
//!
//! Invariant: the contents are accessed through [`Tensor::candle`] alone, so that other kinds can
//! be added.

mod apply;
mod args;
mod backward;
mod compare;
mod data;
pub(crate) mod dtype;
pub(crate) mod fake;
mod front;
mod index;
mod no_grad;
mod number;
mod object;
pub(crate) mod saved;
mod scales;
mod sections;
mod source;
mod tensor_or_number;
pub(crate) mod writes;

use std::fmt;
use std::sync::Arc;

use fx_core::value::{DType, Proxy, Value};
use fx_core::{Error, Result};

use crate::error::dtype_name;
use crate::kernels::{chain, view};

pub use fx_core::tensor::*;

pub use args::{Dims, NormOrder, Pair, Shape, Size, Sizes, Triple};
pub use backward::Gradients;
pub use dtype::{candle_dtype, fx_dtype};
pub(crate) use dtype::{common_of, narrowed, wider};
use front::Room;
pub(crate) use front::Rows;
pub use index::{Ellipsis, Index, NewAxis, Slice, every};
pub(crate) use no_grad::unseen;
pub use no_grad::{is_grad_enabled, no_grad};
pub use number::{Bound, Number};
pub use scales::Scales;
pub use sections::Sections;
pub use tensor_or_number::TensorOrNumber;
pub use writes::Writes;

/// A multi-dimensional array.
///
/// Operations return `Result`s: write `?`. Binary operations broadcast and promote dtypes as PyTorch's
/// do; comparisons give [`DType::Bool`]. Cloning copies a handle; the storage is shared.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, -2.0, 3.0], [3])?;
/// let y = (&x * 2.0)?.relu()?;
/// assert_eq!(y.to_vec()?, [2.0, 0.0, 6.0]);
/// assert_eq!(x.gt(0.0)?.dtype()?, DType::Bool);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// Elements of `int8`, `uint16` and `uint64` are stored: they are moved, indexed, compared, converted, saved, and go
/// through operators and functions of floats, as floats; other functions that compute refuse them.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![100i64, -128, 3], 3)?.to_dtype(DType::I8)?;
/// assert_eq!((&x + 100)?.to_vec()?, [-56.0, -28.0, 103.0]);
/// assert_eq!(x.to_dtype(DType::F32)?.exp()?.dtype()?, DType::F32);
/// let refused = x.relu().map_err(|error| error.to_string());
/// assert!(refused.is_err_and(|text| text.contains("convert the tensor with `to_dtype` first")));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Repr);

#[derive(Clone)]
enum Repr {
    Dense(candle_core::Tensor),
    /// The front part of a longer buffer.
    Front(candle_core::Tensor, Arc<Room>),
    /// Elements of a type that candle lacks, in the type that [`candle_dtype`] names: truth values as zeros and ones.
    Held(DType, candle_core::Tensor),
    Proxy(Proxy),
    /// A shape and a type.
    Fake(FakeTensor),
}

impl Tensor {
    /// The candle tensor, at no cost: elements of a type that candle lacks are held in the type that [`candle_dtype`]
    /// names.
    ///
    /// # Errors
    /// Returns an error if the tensor is symbolic: its data exists only when the graph runs.
    #[track_caller]
    pub fn candle(&self) -> Result<&candle_core::Tensor> {
        self.elements("candle")
    }

    /// The candle tensor, for an operation that computes: `what`.
    #[inline]
    #[track_caller]
    pub(crate) fn data(&self, what: &str) -> Result<&candle_core::Tensor> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(DType::Bool, data) => Ok(data),
            Repr::Held(dtype, _) => Err(is_stored(what, *dtype)),
            Repr::Proxy(proxy) => Err(escape(what, *proxy)),
            Repr::Fake(fake) => Err(no_data(what, fake)),
        }
    }

    /// The candle tensor, for an operation that moves or compares elements of any type: `what`.
    #[inline]
    #[track_caller]
    pub(crate) fn elements(&self, what: &str) -> Result<&candle_core::Tensor> {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => Ok(data),
            Repr::Proxy(proxy) => Err(escape(what, *proxy)),
            Repr::Fake(fake) => Err(no_data(what, fake)),
        }
    }

    /// Both tensors' data, if they are floats of one type, which most are.
    #[inline]
    fn floats_like<'a>(
        &'a self,
        other: &'a Tensor,
    ) -> Option<(&'a candle_core::Tensor, &'a candle_core::Tensor)> {
        match (&self.0, &other.0) {
            (Repr::Dense(x), Repr::Dense(y)) => {
                let dtype = x.dtype();
                (dtype == y.dtype() && dtype.is_float()).then_some((x, y))
            }
            _ => None,
        }
    }

    /// Truth values from `u8` zeros and ones.
    pub(crate) fn from_bools(data: candle_core::Tensor) -> Self {
        Tensor(Repr::Held(DType::Bool, tidy(data)))
    }

    /// Elements as [`candle_dtype`] holds those of a type.
    pub(crate) fn of_type(data: candle_core::Tensor, dtype: DType) -> Self {
        match dtype {
            DType::Bool | DType::I8 | DType::U16 | DType::U64 => {
                Tensor(Repr::Held(dtype, tidy(data)))
            }
            _ => Tensor::made(data),
        }
    }

    /// The result of an operation.
    #[inline(always)]
    pub(crate) fn made(data: candle_core::Tensor) -> Self {
        // A search would be a call, and this runs for each operation.
        let is_empty = data.dims().iter().product::<usize>() == 0;
        match data.track_op() || is_empty {
            true => Tensor::made_with_care(data),
            false => Tensor(Repr::Dense(data)),
        }
    }

    /// A result with a history, or without elements.
    #[inline(never)]
    fn made_with_care(data: candle_core::Tensor) -> Self {
        Tensor::from(chain::linked(no_grad::remembered(data)))
    }

    /// The same element type with other data.
    #[inline]
    pub(crate) fn with_data(&self, data: candle_core::Tensor) -> Self {
        match self.0 {
            Repr::Held(dtype, _) => Tensor(Repr::Held(dtype, tidy(data))),
            _ => Tensor::made(data),
        }
    }

    /// The tensor with rows behind it, where it is if there is room: see [`front::appended`].
    ///
    /// # Errors
    /// Returns an error if the sizes do not fit, or the type is not floating point of at most 32 bits.
    pub(crate) fn appended(&self, rows: &Rows<'_>) -> Result<Tensor> {
        let room = match &self.0 {
            Repr::Front(_, room) => Some(room),
            _ => None,
        };
        let (data, room) = front::appended(self.data("append")?, room, rows)?;
        Ok(match data.elem_count() {
            0 => Tensor::from(data),
            _ => Tensor(Repr::Front(data, room)),
        })
    }

    /// Whether it is the front part of a buffer, to which more may be appended.
    pub(crate) fn is_front(&self) -> bool {
        matches!(self.0, Repr::Front(..))
    }

    pub(crate) fn is_bool(&self) -> bool {
        matches!(self.0, Repr::Held(DType::Bool, _))
    }
}

/// The error of computing with elements that are only stored.
#[cold]
fn is_stored(what: &str, dtype: DType) -> Error {
    Error::msg(format_args!(
        "`{what}` does not compute in {dtype}, whose elements are stored, moved, compared and converted alone: convert the tensor with `to_dtype` first"
    ))
}

/// The error of asking a fake tensor for its elements.
#[cold]
fn no_data(what: &str, fake: &FakeTensor) -> Error {
    Error::msg(format_args!(
        "`{what}` needs the elements of {fake:?}, which has no data: a fake tensor has a shape and a type alone. Load a model of them with `materialise`"
    ))
}

impl From<candle_core::Tensor> for Tensor {
    #[inline]
    fn from(tensor: candle_core::Tensor) -> Self {
        Tensor(Repr::Dense(tidy(tensor)))
    }
}

/// A tensor without elements is never a view: candle reads at a view's offset, which may be past
/// the storage's end.
#[inline]
fn tidy(data: candle_core::Tensor) -> candle_core::Tensor {
    if data.dims().contains(&0) {
        view::fresh(data)
    } else {
        data
    }
}

impl From<Proxy> for Tensor {
    fn from(proxy: Proxy) -> Self {
        Tensor(Repr::Proxy(proxy))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) => {
                write!(f, "Tensor{:?} {}", data.dims(), dtype_name(data.dtype()))
            }
            Repr::Held(dtype, data) => write!(f, "Tensor{:?} {dtype}", data.dims()),
            Repr::Proxy(proxy) => write!(f, "{proxy}"),
            Repr::Fake(fake) => write!(f, "Tensor {fake:?}"),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Dense(data) | Repr::Front(data, _) | Repr::Held(_, data) => {
                fmt::Display::fmt(data, f)
            }
            Repr::Proxy(proxy) => fmt::Display::fmt(proxy, f),
            Repr::Fake(fake) => fmt::Debug::fmt(fake, f),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::object(tensor)
    }
}
