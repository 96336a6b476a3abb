//! `RemoveDropout` and `RemoveIdentity`: nodes that give what came in leave, and their users take the input.
//!
//! Invariant: modules that nothing calls any more leave with the nodes that called them, and no others.

use std::collections::HashSet;
use std::sync::Arc;

use fx_core::{Argument, GraphModule, NodeId, NodeRef, Op, Pass, Result, function};

use crate::nn;
use crate::ops;

/// Takes dropout out for inference: calls of [`nn::Dropout`] and of [`ops::dropout`], in whatever mode they are.
///
/// In evaluation mode the numbers stay. **In training mode they do not**: what was dropped at random is kept, and other
/// random operations draw other numbers. [`RemoveIdentity`] takes away only what drops nothing. Dropout inside of attention
/// and recurrent layers is theirs, and stays.
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
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        remove(gm, |gm, node| match node.op() {
            Op::CallModule(path) => gm.submodule_as::<nn::Dropout>(path).is_ok(),
            Op::CallFunction(called) => *called == function!(ops::dropout),
            _ => false,
        })
    }
}

/// Takes out what gives its input: [`nn::Identity`], and dropout that drops nothing, because it is in evaluation mode or
/// its probability is 0 ([`nn::Dropout`], [`ops::dropout`]). The numbers stay.
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

/// The node that a call of one tensor takes.
pub(super) fn input_of(node: NodeRef<'_>) -> Option<NodeId> {
    let named = || node.kwargs().iter().find(|(name, _)| &**name == "x");
    let given = node.args().first().or_else(|| named().map(|(_, arg)| arg));
    given.and_then(Argument::as_node)
}

/// Whether a call of the function `dropout` says that it gives its input.
fn drops_nothing(node: NodeRef<'_>) -> bool {
    let is_off = matches!(node.argument("training"), Ok(Argument::Bool(false)));
    is_off
        || match node.argument("p") {
            Ok(Argument::Float(p)) => p == 0.0,
            Ok(Argument::Int(p)) => p == 0,
            _ => false,
        }
}

/// Users of the chosen nodes take those nodes' inputs.
fn remove(
    gm: &mut GraphModule,
    chosen: impl Fn(&GraphModule, NodeRef<'_>) -> bool,
) -> Result<bool> {
    let nodes = gm.graph().nodes();
    let chosen: Vec<NodeId> = nodes
        .filter(|node| chosen(gm, *node) && input_of(*node).is_some())
        .map(NodeRef::id)
        .collect();
    let mut called = HashSet::new();
    let mut graph = gm.graph_mut();
    for id in &chosen {
        let node = graph.node(*id)?;
        if let Op::CallModule(path) = node.op() {
            called.insert(path.clone());
        }
        // Read now: a chosen node before this one may have been its input.
        if let Some(input) = input_of(node) {
            graph.node_mut(*id)?.replace_all_uses_with(input)?;
            graph.erase_node(*id)?;
        }
    }
    drop(graph);
    drop_uncalled(gm, called);
    Ok(!chosen.is_empty())
}

/// Takes away those of some modules that the graph calls no more.
pub(super) fn drop_uncalled(gm: &mut GraphModule, mut candidates: HashSet<Arc<str>>) {
    if candidates.is_empty() {
        return;
    }
    for node in gm.graph().nodes() {
        if let Op::CallModule(path) | Op::GetAttr(path) = node.op() {
            candidates.remove(path);
        }
    }
    gm.retain_submodules(|path, _| !candidates.contains(path));
}
