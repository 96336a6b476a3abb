//! Dead code: nodes whose results nobody uses and whose calls do nothing else.

use super::graph::Graph;
use super::node::NodeRef;
use super::op::Op;
use super::order::ROOT;
use crate::error::Result;

impl NodeRef<'_> {
    /// Whether the node does more than computing its result, by what functions and methods declare.
    ///
    /// Inputs and outputs are kept; what a module or an unknown method does is not known here, so a call
    /// of one counts as impure. A graph module knows its modules: ask
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
    /// Erases every node that nobody uses and that is not impure; gives how many went.
    ///
    /// # Errors
    /// When the graph breaks its rules ([`lint`](Graph::lint)); nothing changes then.
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

    /// As [`eliminate_dead_code`](Graph::eliminate_dead_code), where `is_impure` says what is kept.
    /// Placeholders and outputs are kept whatever it says.
    ///
    /// # Errors
    /// As `eliminate_dead_code`.
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
