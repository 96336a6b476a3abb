//! Dead code: nodes whose results are unused and whose calls have no other effect.

use super::graph::Graph;
use super::node::NodeRef;
use super::op::Op;
use super::order::ROOT;
use crate::error::Result;

impl NodeRef<'_> {
    /// Whether the node does more than compute its result, as declared by functions and methods.
    ///
    /// Inputs and outputs are kept. The effects of a module or an unknown method are not known
    /// here, so calls to them count as impure. A graph module knows its modules: use
    /// [`GraphModule::is_impure_node`](crate::GraphModule::is_impure_node).
    pub fn is_impure(self) -> bool {
        match self.op() {
            Op::Placeholder(_) | Op::Output | Op::CallModule(_) => true,
            Op::GetAttr(_) => false,
            Op::CallFunction(function) => !function.is_pure(),
            Op::CallMethod(_) => !self.functions().effects().is_pure(),
        }
    }
}

impl Graph {
    /// Erases every node that is unused and not impure. Returns the number erased.
    ///
    /// # Errors
    /// Returns an error if the graph breaks its rules ([`lint`](Graph::lint)); nothing changes
    /// then.
    ///
    /// ```
    /// # use fx_core::operator;
    /// # use fx_core::ir::Graph;
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x")?;
    /// graph.call_function(operator::neg, (x,), ())?;
    /// graph.output(x)?;
    /// assert_eq!(graph.eliminate_dead_code()?, 1);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn eliminate_dead_code(&mut self) -> Result<usize> {
        self.eliminate_dead_code_with(|node| node.is_impure())
    }

    /// Same as [`eliminate_dead_code`](Graph::eliminate_dead_code), with a custom `is_impure`.
    /// Placeholders and outputs are always kept.
    ///
    /// # Errors
    /// Same as `eliminate_dead_code`.
    pub fn eliminate_dead_code_with(
        &mut self,
        mut is_impure: impl FnMut(NodeRef<'_>) -> bool,
    ) -> Result<usize> {
        self.lint()?;
        self.order_is_topological();
        let before = self.len();
        let mut index = self.order.prev(ROOT);
        while index != ROOT {
            let prev = self.order.prev(index);
            if self.uses.count(index) == 0 {
                let node = NodeRef::new(self, index);
                let kept = matches!(node.op(), Op::Placeholder(_) | Op::Output);
                if !kept && !is_impure(node) {
                    let id = node.id();
                    self.erase_node(id)?;
                }
            }
            index = prev;
        }
        Ok(before - self.len())
    }
}
