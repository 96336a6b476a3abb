//! The core set of fx-nn's functions: its members, and how every other function is written by them.
//!
//! Invariant: every function of [`ops`](crate::ops) is a member or has a decomposition, which gives
//! the function's numbers. Members are what others cannot be written without, and what an engine
//! computes better whole: convolutions, pools, norms with running statistics, factorizations.

mod activations;
mod creation;
mod elementwise;
mod losses;
mod norms;
mod products;
mod reductions;
mod views;

pub(crate) use self::norms::{Attention, attention_shares, for_heads, scaled, unknown_mask};

use fx_core::passes::DecomposedCall;
use fx_core::value::DType;
use fx_core::{Error, Result};

use crate::tensor::dtype::result_type;
use crate::tensor::{Number, Tensor};
use crate::{Dims, ops};

/// Decompositions: the function with the parameters that its rule reads, the call where the rule
/// asks for types, and a result of them.
macro_rules! decompose {
    ($($($function:ident)::+ ($($param:ident: $ty:ty),* $(,)?) $(|$asked:ident|)? => $result:expr;)*) => {$(
        ::fx_core::function_table! { ::fx_core::passes::CoreSet {
            ::fx_core::function!($($function)::+) => ::fx_core::passes::CoreSet::decomposed(|call| {
                $(let $asked = call;)?
                $(let $param: $ty = call.arg(stringify!($param))?;)*
                let result: ::fx_core::Result<_> = $result;
                result.map(::fx_core::value::IntoValue::into_value)
            })
        } }
    )*};
}
use decompose;

/// The mean of losses, their sum, or the losses.
pub(crate) fn reduced(losses: Result<Tensor>, reduction: &str) -> Result<Tensor> {
    let losses = losses?;
    match reduction {
        "mean" => ops::mean(&losses, Dims::All, false),
        "sum" => ops::sum(&losses, Dims::All, false),
        "none" => Ok(losses),
        other => Err(Error::msg(format_args!(
            "a reduction is \"mean\", \"sum\" or \"none\", not {other:?}"
        ))),
    }
}

/// The element type of an argument, if it is known.
pub(crate) fn dtype_of(call: &DecomposedCall<'_>, name: &str) -> Option<DType> {
    call.meta(name)?.tensor()?.dtype
}

/// How many dims an argument has, if it is known.
pub(crate) fn rank_of(call: &DecomposedCall<'_>, name: &str) -> Option<usize> {
    Some(call.meta(name)?.tensor()?.shape.len())
}

/// Whether an argument is known to have no elements.
fn is_empty(call: &DecomposedCall<'_>, name: &str) -> bool {
    let meta = call.meta(name).and_then(|meta| meta.tensor());
    meta.is_some_and(|meta| meta.shape.iter().any(|size| *size == 0))
}

/// Casts to `f32` and back, where all floats among some arguments are known to be of one half type.
#[derive(Clone, Copy)]
struct Wide(Option<DType>);

impl Wide {
    fn of(call: &DecomposedCall<'_>, names: &[&str]) -> Self {
        let dtypes = names.iter().filter_map(|name| dtype_of(call, name));
        let mut floats = dtypes.filter(|dtype| dtype.is_floating_point());
        let Some(first @ (DType::F16 | DType::BF16)) = floats.next() else {
            return Wide(None);
        };
        Wide(floats.all(|dtype| dtype == first).then_some(first))
    }

    fn up(self, x: &Tensor) -> Result<Tensor> {
        match self.0 {
            Some(_) => ops::to_dtype(x, DType::F32),
            None => Ok(x.clone()),
        }
    }

    fn down(self, y: &Tensor) -> Result<Tensor> {
        match self.0 {
            Some(half) => ops::to_dtype(y, half),
            None => Ok(y.clone()),
        }
    }
}

/// A result of x, computed in `f32` if x is known to be of a half type, which would round and
/// overflow between the steps.
pub(crate) fn widened(
    call: &DecomposedCall<'_>,
    (name, x): (&str, &Tensor),
    compute: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let wide = Wide::of(call, &[name]);
    wide.down(&compute(&wide.up(x)?)?)
}

/// An argument in the type that a call computes in, where the types of these arguments are known.
fn in_common(
    call: &DecomposedCall<'_>,
    names: &[&str],
    (name, x): (&str, &Tensor),
) -> Result<Tensor> {
    let metas = names.iter().map(|name| {
        let meta = call.meta(name)?.tensor()?;
        Some((meta.dtype?, !meta.shape.is_empty()))
    });
    match metas.collect::<Option<Vec<_>>>().and_then(result_type) {
        Some(dtype) if dtype_of(call, name) != Some(dtype) => ops::to_dtype(x, dtype),
        _ => Ok(x.clone()),
    }
}

/// Two tensors of one shape: a tensor without dims counts for the element type like any other then.
fn alike(
    call: &DecomposedCall<'_>,
    (a_name, a): (&str, &Tensor),
    (b_name, b): (&str, &Tensor),
) -> Result<[Tensor; 2]> {
    match (call.meta(a_name), call.meta(b_name)) {
        (Some(one), Some(other)) if one == other => Ok([a.clone(), b.clone()]),
        _ => ops::broadcast_tensors(&[a.clone(), b.clone()])?.unpack(),
    }
}

/// x times a number.
fn times(x: &Tensor, number: Number) -> Result<Tensor> {
    match number {
        Number::Bool(b) => x * i64::from(b),
        Number::Int(n) => x * n,
        Number::Float(n) => x * n,
    }
}
