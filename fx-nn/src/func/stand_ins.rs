//! `with_vjp` and `cotangent_of`: how a graph says that a function has a derivative of its own.
//!
//! Invariant: what a rule gives is made of stand-ins for the gradients, and of nothing behind the call that it belongs to.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::passes::DecomposedCall;
use fx_core::shapes::RuleCall;
use fx_core::trace::List;
use fx_core::value::Value;

use crate::op;
use crate::ops;
use crate::tensor::Tensor;

/// What stands for the gradient of a result in the rule of a custom derivative: zeros where no gradient is taken.
///
/// # Errors
/// Returns the error of [`zeros_like`](ops::zeros_like).
#[op(
    rule = same_as_result,
    decomposed = |call: &DecomposedCall<'_>| ops::zeros_like(&call.arg::<Tensor>("result")?, None),
    flat = "stands for a gradient",
    path = "fx_nn::func::cotangent_of"
)]
pub fn cotangent_of(result: &Tensor) -> Result<Tensor> {
    ops::zeros_like(result, None)
}

/// Some results, whose gradient gives `grads` for `args`; these are made of `cotangents`, for which the gradients of the
/// results are put. [`custom_vjp`](super::custom_vjp) records it.
///
/// # Errors
/// Returns no errors of its own.
#[op(
    rule = same_as_results,
    decomposed = the_results,
    path = "fx_nn::func::with_vjp"
)]
pub fn with_vjp(
    results: &[Tensor],
    args: &[Tensor],
    cotangents: &[Tensor],
    grads: &[Tensor],
) -> Result<List<Tensor>> {
    let _ = (args, cotangents, grads);
    Ok(results.to_vec().into())
}

fn same_as_result(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    call.arg("result").cloned()
}

fn same_as_results(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    call.arg("results").cloned()
}

fn the_results(call: &DecomposedCall<'_>) -> Result<Value> {
    call.arg("results")
}
