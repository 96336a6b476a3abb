//! The rules of fx's operations, a family a file.
//!
//! Invariant: every function of `fx_nn::ops` and every operator has a rule, is written by other functions of the core
//! set, or has a reason why ONNX cannot have it.

mod arithmetic;
mod create;
mod images;
mod norms;
mod operators;
mod picks;
mod products;
mod quantization;
mod recurrent;
mod reduce;
mod refused;
mod resize;
mod selective;
mod shapes;

use fx_nn::prelude::*;

use super::context::Cx;
use fx_nn::lowering::OpCall;
use fx_nn::lowering::Val;

/// Registers rules: the function, and what writes its calls.
macro_rules! rules {
    ($($($function:ident)::+ => $emit:expr),+ $(,)?) => {
        ::fx_nn::function_table! { $crate::out::Rule {
            $(::fx_nn::function!(::fx_nn::ops::$($function)::+) => $crate::out::Rule::new($emit)),+
        } }
    };
}
use rules;

/// Nodes with one input `x` in the type of the result.
fn unary(op: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |cx, call| {
        let x = cx.widened_elements(call, "x")?;
        let name = cx.cast_op(op, &[&x])?;
        call.given(name)
    }
}

/// What leaves nothing in the file but its argument.
fn nothing(argument: &'static str) -> impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync {
    move |_, call| call.val(argument)
}
