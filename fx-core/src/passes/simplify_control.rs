//! `SimplifyControl`: branches whose condition is known, and loops that take no turn.
//!
//! Invariant: what is left computes what the branch or loop gave.

use std::any::Any;

use super::pass::Pass;
use crate::control::{Cond, While};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::op::Op;
use crate::value::handle::NodeId;

/// Puts the side that is taken instead of a branch whose condition is known, and the values that it
/// begins with instead of a loop that takes no turn. [`FoldConstants`](super::FoldConstants) finds
/// conditions that depend on constants alone; `Trace::concrete` binds them.
///
/// ```
/// use fx_core::control;
/// use fx_core::prelude::*;
/// use fx_core::ir::Argument;
/// use fx_core::passes::SimplifyControl;
/// let f = traced!(|x: Float, up: Bool| control::cond(up, || x * 3.0, || x - 1.0));
/// let mut gm = symbolic_trace(f)?;
/// let cond = gm.graph().find_name("cond").map(|node| node.id());
/// let cond = cond.ok_or_else(|| Error::msg("there is a branch"))?;
/// gm.graph_mut().node_mut(cond)?.update_arg(0, Argument::Bool(true))?;
/// gm.apply(&SimplifyControl)?;
/// assert!(gm.code().contains("(x * 3.0)?"));
/// assert!(!gm.code().contains("if "));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SimplifyControl;

impl Pass for SimplifyControl {
    fn enters_control(&self) -> bool {
        true
    }

    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let known: Vec<(NodeId, bool)> = gm
            .graph()
            .nodes()
            .filter(|node| matches!(node.op(), Op::CallModule(_)))
            .filter_map(|node| match node.args().first() {
                Some(Argument::Bool(truth)) => Some((node.id(), *truth)),
                _ => None,
            })
            .collect();
        let mut changed = false;
        for (call, truth) in known {
            changed |= simplified(gm, call, truth)?;
        }
        Ok(changed)
    }
}

/// What a call of a branch or a loop becomes whose condition is known.
enum Known {
    /// This side runs.
    Side(Box<GraphModule>),
    /// There is no turn.
    Carried(usize),
}

fn simplified(gm: &mut GraphModule, call: NodeId, truth: bool) -> Result<bool> {
    let node = gm.graph().node(call)?;
    let Op::CallModule(path) = node.op() else {
        return Ok(false);
    };
    let module: &dyn Any = gm.attributes().module(path)?;
    let known = if let Some(branch) = module.downcast_ref::<Cond>() {
        let side = match truth {
            true => branch.then(),
            false => branch.otherwise(),
        };
        Known::Side(Box::new(side.clone()))
    } else if let Some(repeat) = module.downcast_ref::<While>()
        && !truth
    {
        Known::Carried(repeat.carries())
    } else {
        return Ok(false);
    };
    let path = path.to_string();
    let args: Vec<Argument> = node.args().iter().skip(1).cloned().collect();
    match known {
        Known::Side(side) => {
            gm.set_submodule(&path, *side)?;
            gm.graph_mut().node_mut(call)?.set_args(args)?;
            gm.inline_module(call)?;
        }
        Known::Carried(carries) => {
            let carried: Vec<Argument> = args.into_iter().take(carries).collect();
            let result = match <[Argument; 1]>::try_from(carried) {
                Ok([only]) => only,
                Err(several) => Argument::Tuple(several.into()),
            };
            let mut graph = gm.graph_mut();
            graph.substitute(call, &result)?;
            graph.erase_node(call)?;
        }
    }
    Ok(true)
}
