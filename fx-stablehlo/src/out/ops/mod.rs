//! The rules of fx's operations, a family a file.
//!
//! Invariant: every function of the core set has a rule, is written by other functions, or has a reason why StableHLO
//! cannot have it.

mod create;
mod elementwise;
mod norms;
mod operators;
mod picks;
mod products;
mod random;
mod recurrent;
mod reduce;
mod reduce_window;
mod refused;
mod resize;
mod shape;
mod windows;

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;

use crate::out::cx::{Array, Cx};

/// Registers rules: the function, and what writes its calls.
macro_rules! rules {
    ($($($function:ident)::+ => $emit:expr),+ $(,)?) => {
        ::fx_nn::function_table! { $crate::out::Rule {
            $(::fx_nn::function!(::fx_nn::ops::$($function)::+) => $crate::out::Rule::new($emit)),+
        } }
    };
}
use rules;

/// What leaves nothing in the program but its argument.
fn nothing(argument: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |_, call| call.val(argument)
}

/// Places of dims, from the front.
fn dims_of(call: &OpCall<'_>, name: &str, rank: usize) -> Result<Vec<i64>> {
    let mut dims = call.places(name, rank)?;
    dims.retain(|dim| (0..rank as i64).contains(dim));
    Ok(dims)
}

/// The place of a dim, of a tensor with so many.
fn dim_of(call: &OpCall<'_>, name: &str, rank: usize) -> Result<usize> {
    let dim = call.place(name, rank)?;
    match usize::try_from(dim) {
        Ok(dim) if dim < rank.max(1) => Ok(dim),
        _ => Err(Error::msg(format_args!(
            "a tensor of {rank} dims has no dim {dim}"
        ))),
    }
}

/// A result in the element type and shape that the call gives.
fn given(cx: &mut Cx, call: &OpCall<'_>, y: &Array) -> Result<Val> {
    let (dtype, shape) = cx.result(call)?;
    let y = cx.convert(y, dtype);
    Ok(cx.reshape(&y, &shape).into())
}
