//! `multiply_adds`: the cost of each call, for the choice of stages.
//!
//! Invariant: each call costs something, whatever it computes.

use std::collections::HashMap;

use fx_core::ir::NodeRef;
use fx_core::trace::IntoArgs;
use fx_core::value::{NodeId, Value};
use fx_core::{Error, GraphModule, Result};

use crate::counter::Counter;

/// What a call costs.
pub type CostOfCall = Box<dyn Fn(NodeRef<'_>) -> u64>;

/// What each call of a graph costs, for
/// [`PipelineOptions::cost`](fx_core::passes::pipeline::PipelineOptions::cost): its multiply-adds, as
/// [`counts`](crate::passes::counts) has them, and one for each byte of its result, since calls
/// without products take time as well. The graph is run on sample inputs, which may be fake tensors.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::passes::pipeline::multiply_adds;
/// let gm = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(16, 4)?).push(nn::ReLU::new()))?;
/// let cost = multiply_adds(&gm, &Tensor::rand((2, 16))?)?;
/// let of = |name| gm.graph().find_name(name).map(&cost);
/// assert_eq!(of("_0"), Some(2 * 16 * 4 + 2 * 4 * 4));
/// assert_eq!(of("_1"), Some(2 * 4 * 4));
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a node fails, or a number of multiply-adds is not known, since a size has a
/// name: it names the node.
pub fn multiply_adds(gm: &GraphModule, args: impl IntoArgs) -> Result<CostOfCall> {
    let mut counter = Counter::default();
    gm.interpret::<Value>(&mut counter, args)?;
    let mut costs: HashMap<NodeId, u64> = HashMap::default();
    for seen in counter.nodes {
        let count = seen.multiply_adds.as_known().ok_or_else(|| {
            let problem = format!(
                "its multiply-adds are {}, and stages need a number: give inputs whose sizes are numbers",
                seen.multiply_adds
            );
            match gm.graph().node(seen.id) {
                Ok(node) => node.blame("counting", Error::msg(problem)),
                Err(error) => error,
            }
        })?;
        let cost = (count as u64).saturating_add(seen.output.bytes() as u64);
        costs.insert(seen.id, cost.max(1));
    }
    Ok(Box::new(move |node| {
        costs.get(&node.id()).copied().unwrap_or(1)
    }))
}
