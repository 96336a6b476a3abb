//! `RemoveDropout` and `RemoveIdentity`: remove dropout, and nodes that return their input
//! unchanged.
//!
//! Invariant: modules that are no longer called are removed with the nodes that called them, and no
//! others.

use fx_core::ir::{Argument, NodeRef, Op};
use fx_core::passes::Pass;
use fx_core::value::NodeId;
use fx_core::{GraphModule, Result, function};

use crate::{nn, ops};

/// Removes dropout for inference: calls of [`nn::Dropout`] and of [`ops::dropout`], in any mode.
///
/// In evaluation mode the numbers stay. **In training mode they do not**: elements that were
/// dropped at random are kept, and other random operations draw other numbers. [`RemoveIdentity`]
/// removes only dropout that drops nothing. Dropout inside attention and recurrent layers belongs
/// to them, and stays.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::RemoveDropout;
/// let model = nn::Sequential::new().push(nn::Linear::new(4, 4)?).push(nn::Dropout::new(0.5)?);
/// let mut gm = symbolic_trace(&model)?;
/// assert_eq!(gm.apply(&RemoveDropout)?.erased, ["_1"]);
/// assert!(gm.submodule("1").is_err());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoveDropout;

impl Pass for RemoveDropout {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        remove(gm, |gm, node| match node.op() {
            Op::CallModule(path) => gm.submodule_as::<nn::Dropout>(path).is_ok(),
            Op::CallFunction(called) => *called == function!(ops::dropout),
            _ => false,
        })
    }
}

/// Removes nodes that return their input: [`nn::Identity`], and dropout that drops nothing, because
/// it is in evaluation mode or its probability is 0 ([`nn::Dropout`], [`ops::dropout`]). The
/// numbers stay.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::RemoveIdentity;
/// let mut gm = symbolic_trace(traced!(|x: &Tensor| ops::dropout(&ops::dropout(x, 0.5, false)?, 0.5, true)?.relu()))?;
/// assert_eq!(gm.apply(&RemoveIdentity)?.erased, ["dropout"]);
/// assert!(gm.graph().find_name("dropout_1").is_some());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoveIdentity;

impl Pass for RemoveIdentity {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        remove(gm, |gm, node| match node.op() {
            Op::CallModule(path) => {
                gm.submodule_as::<nn::Identity>(path).is_ok()
                    || gm
                        .submodule_as::<nn::Dropout>(path)
                        .is_ok_and(|dropout| !dropout.training || dropout.p == 0.0)
            }
            Op::CallFunction(called) => *called == function!(ops::dropout) && drops_nothing(node),
            _ => false,
        })
    }
}

/// Whether the arguments of a `dropout` call make it return its input.
fn drops_nothing(node: NodeRef<'_>) -> bool {
    let is_off = matches!(node.argument("training"), Ok(Argument::Bool(false)));
    is_off
        || match node.argument("p") {
            Ok(Argument::Float(p)) => p == 0.0,
            Ok(Argument::Int(p)) => p == 0,
            _ => false,
        }
}

/// Replaces the chosen nodes with their inputs.
fn remove(
    gm: &mut GraphModule,
    chosen: impl Fn(&GraphModule, NodeRef<'_>) -> bool,
) -> Result<bool> {
    let mut removed = Vec::new();
    for node in gm.graph().nodes().filter(|node| chosen(gm, *node)) {
        let bound = gm.call(node)?.bind()?;
        if let Some((_, input)) = bound.iter().next() {
            removed.push((node.id(), input.into_owned()));
        }
    }
    let nodes: Vec<NodeId> = removed.iter().map(|(node, _)| *node).collect();
    let mut edit = gm.graph_mut();
    // In reverse order: the input of one may be another.
    for (node, input) in removed.iter().rev() {
        edit.substitute(*node, input)?;
    }
    edit.erase_unused(&nodes)?;
    Ok(!nodes.is_empty())
}
