//! The derivatives of fx-nn's functions and of fx's operators in reverse mode, a family a file.
//!
//! Invariant: a rule is linear in the gradient of the result, and made of functions that have derivatives; at ties,
//! bounds and infinities it gives what PyTorch gives.

mod attending;
mod composites;
mod conv_steps;
mod conv_weight;
mod elementwise;
mod linalg;
mod picks;
mod products;
mod quantization;
mod random;
mod reductions;
mod sampling;
mod scans;
mod spectra;
mod views;
mod windows;

/// Derivatives: the function, the call, and what its gradients are.
macro_rules! derivatives {
    ($($($function:ident)::+ => |$call:ident| $rule:expr;)*) => {$(
        ::fx_core::function_table! { $crate::func::Derivative {
            ::fx_core::function!($($function)::+) => $crate::func::Derivative::Vjp(|$call| $rule)
        } }
    )*};
}
use derivatives;

/// The same for operators, which are functions already.
macro_rules! operators {
    ($($function:ident => |$call:ident| $rule:expr;)*) => {$(
        ::fx_core::function_table! { $crate::func::Derivative {
            ::fx_core::operator::$function => $crate::func::Derivative::Vjp(|$call| $rule)
        } }
    )*};
}
use operators;

use fx_core::Result;

pub use self::attending::attention;
pub use self::conv_weight::conv2d_weight;

use crate::ops;
use crate::tensor::Tensor;

/// Matrices, each transposed.
fn turned(x: &Tensor) -> Result<Tensor> {
    ops::transpose(x, -1, -2)
}

/// A result with its sign turned.
fn minus(x: Result<Tensor>) -> Result<Tensor> {
    -&x?
}
