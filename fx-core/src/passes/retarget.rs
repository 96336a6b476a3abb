//! Replaces one target by another, at all nodes at once.

use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::ir::op::Op;
use crate::value::handle::NodeId;

impl GraphModule {
    /// Replaces the op of every node of one op: torch.fx's `replace_target_nodes_with`. Returns how
    /// many there were.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::Op;
    /// use fx_core::operator;
    /// let mut gm = symbolic_trace(traced!(|x: Float| ((x + 1.0)? * 2.0)? + 3.0))?;
    /// let changed = gm.retarget(&Op::CallFunction(operator::add), Op::CallFunction(operator::sub))?;
    /// assert_eq!((changed, gm.forward::<f64>(5.0)?), (2, 5.0));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the arguments of a node do not fit the new op; nothing changes then.
    pub fn retarget(&mut self, from: &Op, to: Op) -> Result<usize> {
        let nodes = self.graph().find_nodes(from);
        let nodes: Vec<NodeId> = nodes.into_iter().map(|node| node.id()).collect();
        self.edit(|gm| {
            let mut graph = gm.graph_mut();
            for id in &nodes {
                graph.node_mut(*id)?.set_op(to.clone())?;
            }
            drop(graph);
            gm.lint()?;
            Ok(nodes.len())
        })
    }
}
