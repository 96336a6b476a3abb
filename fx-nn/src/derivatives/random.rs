//! Random functions as functions of one draw: the gradient is of the elements that were drawn.

use fx_core::passes::DecomposedCall;
use fx_core::value::IntoValue;
use fx_core::{Error, Result};

use crate::func::Derivative;
use crate::ops;
use crate::tensor::Tensor;

/// Random functions by a draw for ones or zeros, which does not depend on the elements.
macro_rules! by_a_draw {
    ($($function:ident => |$call:ident, $x:ident| $rule:expr;)*) => {
        fx_core::function_table! { Derivative {
            $(fx_core::function!(ops::$function) => Derivative::Composite(|$call| {
                let $x: Tensor = $call.arg("x")?;
                if !$call.arg::<bool>("training")? || keeps_all($call) {
                    return outside(&$x, $call);
                }
                let result: Result<Tensor> = $rule;
                result.map(IntoValue::into_value)
            }),)*
        } }
    };
}

by_a_draw! {
    dropout => |call, x| &x * ops::dropout(&ops::ones_like(&x, None)?, call.arg("p")?, true)?;
    dropout1d => |call, x| &x * ops::dropout1d(&ops::ones_like(&x, None)?, call.arg("p")?, true)?;
    dropout2d => |call, x| &x * ops::dropout2d(&ops::ones_like(&x, None)?, call.arg("p")?, true)?;
    dropout3d => |call, x| &x * ops::dropout3d(&ops::ones_like(&x, None)?, call.arg("p")?, true)?;
    stochastic_depth => |call, x| {
        let mode: String = call.arg("mode")?;
        &x * ops::stochastic_depth(&ops::ones_like(&x, None)?, call.arg("p")?, &mode, true)?
    };
    rrelu => |call, x| {
        // Of -1, minus the slope.
        let ones = ops::ones_like(&x, None)?;
        let slope = (-ops::rrelu(&(-ones)?, call.arg("lower")?, call.arg("upper")?, true)?)?;
        ops::r#where(&x.ge(0)?, &x, &(&x * slope)?)
    };
    alpha_dropout => |call, x| affine(&x, call.arg("p")?, |zeros, p| ops::alpha_dropout(zeros, p, true));
    feature_alpha_dropout => |call, x| affine(&x, call.arg("p")?, |zeros, p| ops::feature_alpha_dropout(zeros, p, true));
}

/// Whether the chance of a zero is none.
fn keeps_all(call: &DecomposedCall<'_>) -> bool {
    call.function() != fx_core::function!(ops::rrelu)
        && call.arg::<f64>("p").is_ok_and(|p| p == 0.0)
}

/// What a random function gives outside of training.
fn outside(x: &Tensor, call: &DecomposedCall<'_>) -> Result<fx_core::value::Value> {
    match call.function() == fx_core::function!(ops::rrelu) {
        true => {
            let (lower, upper): (f64, f64) = (call.arg("lower")?, call.arg("upper")?);
            ops::leaky_relu(x, (lower + upper) / 2.0).map(IntoValue::into_value)
        }
        false => Ok(x.into_value()),
    }
}

/// Where elements stay they are scaled and moved; where not, one number: of zeros, two numbers that tell which.
fn affine(
    x: &Tensor,
    p: f64,
    drawn: impl FnOnce(&Tensor, f64) -> Result<Tensor>,
) -> Result<Tensor> {
    /// The lowest value of SELU.
    const LOWEST: f64 = -1.758_099_340_847_376_6;
    if p >= 1.0 {
        return ops::zeros_like(x, None);
    }
    let of_zeros = drawn(&ops::zeros_like(x, None)?, p)?;
    let scale = ((1.0 - p) * (1.0 + p * LOWEST * LOWEST)).sqrt().recip();
    let (moved, dropped) = (-scale * p * LOWEST, scale * (1.0 - p) * LOWEST);
    if !(scale.is_finite() && moved != dropped) {
        return Err(Error::msg(format_args!("p = {p} leaves no element")));
    }
    // Halfway between the two.
    let stays = of_zeros.gt(f64::midpoint(moved, dropped))?;
    ops::r#where(&stays, (x * scale)?, 0)? + of_zeros
}
