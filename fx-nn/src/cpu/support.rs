//! Which calls a program can have.
//!
//! Invariant: what is refused would have effects, or be in training.

use fx_core::ir::{Argument, Function};
use fx_core::module::{Call, Callee, Module};
use fx_core::passes::backend::Support;
use fx_core::trace::Trace;
use fx_core::{GraphModule, Result, operator};

use super::lowering::CpuLowering;
use super::matrix;

/// Whether it stops a run that the graph would stop too: the graph says why.
fn is_assertion(function: Function) -> bool {
    function == operator::_assert || function == operator::assert_specialized
}

/// Whether a program can have a call. A function without a kernel is called as it is, on values.
pub(super) fn supports_call(call: &Call<'_>) -> Support {
    match (call.callee(), call.function()) {
        (_, Some(function)) => {
            let training = is_training(call);
            let path = function.path();
            let has_kernel = match CpuLowering::of(function) {
                Ok(lowering) => lowering.is_some_and(CpuLowering::has_kernel),
                Err(error) => return Support::no(error.to_string()),
            };
            match function.def().effects.is_pure() {
                _ if training == Some(true) => Support::no(format!("{path} is in training")),
                _ if has_kernel => Support::Yes,
                true => Support::IfFused,
                false if training == Some(false) || is_assertion(function) => Support::IfFused,
                false => Support::no(format!("{path} has effects")),
            }
        }
        (Callee::Module(layer), _) if !layer.graph_names().is_empty() => Support::no(
            "it has a branch or a loop inside, and a program has none: `gm.opened()` brings it into the graph, where its sides are lowered",
        ),
        (Callee::Module(layer), _) if layer.is_opaque() => matrix::supports(*layer),
        (Callee::Module(layer), _) => match supports_layer(*layer) {
            Ok(support) => support,
            Err(error) => Support::no(format!("its body cannot be traced: {error}")),
        },
        _ => Support::no("the callee is not known"),
    }
}

/// Why there can be no program of a part as it is now; `None` if there can.
pub(super) fn refusal(part: &GraphModule) -> Result<Option<String>> {
    for node in part.graph().nodes().filter(|node| node.op().is_call()) {
        if let Support::No(reason) = supports_call(&part.call(node)?) {
            return Ok(Some(format!("%{}: {reason}", node.name())));
        }
    }
    Ok(None)
}

/// Whether a call has an argument that says so; `None` if it has no such argument.
fn is_training(call: &Call<'_>) -> Option<bool> {
    let bound = call.bind().ok()?;
    // Networks over sequences have another word for it.
    let given = bound.get("training").or_else(|| bound.get("train"));
    match given.as_deref() {
        Some(Argument::Bool(training)) => Some(*training),
        _ => None,
    }
}

fn supports_layer(layer: &dyn Module) -> Result<Support> {
    let body = Trace::new(layer).graph_module()?;
    let mut support = Support::IfFused;
    for node in body.graph().nodes().filter(|node| node.op().is_call()) {
        match supports_call(&body.call(node)?) {
            Support::Yes => support = Support::Yes,
            no @ Support::No(_) => return Ok(no),
            _ => {}
        }
    }
    Ok(support)
}
