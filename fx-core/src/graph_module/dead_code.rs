//! Erasing what nobody uses, in a graph module and those inside it.
//!
//! Invariant: what is not pure stays.

use super::GraphModule;
use super::parts::{for_each_graph_of, graphs_of};
use crate::error::Result;
use crate::module::call::Call;

impl GraphModule {
    /// Erases every node that nobody uses and that is not impure, in nested graph modules too;
    /// returns how many were erased.
    ///
    /// # Errors
    /// Returns an error if a graph breaks its rules; nothing changes then.
    pub fn eliminate_dead_code(&mut self) -> Result<usize> {
        self.edit(|gm| {
            let mut erased = gm.erase_unused()?;
            erased += gm.drop_unused_results()?;
            for at in 0..gm.attributes.modules.len() {
                let module = gm.attributes.modules.get_index(at);
                if module.is_none_or(|(_, module)| graphs_of(&**module).is_empty()) {
                    continue;
                }
                if let Some((_, module)) = gm.attributes.modules.lend(at) {
                    for_each_graph_of(&mut **module, |_, inner| {
                        erased += inner.eliminate_dead_code()?;
                        Ok(())
                    })?;
                }
            }
            if gm.drop_unused_operands()? {
                erased += gm.erase_unused()?;
            }
            Ok(erased)
        })
    }

    /// Erases what nobody uses and is not impure in this graph alone.
    fn erase_unused(&mut self) -> Result<usize> {
        let mut edit = self.graph_mut();
        let (graph, attributes) = edit.parts();
        graph.eliminate_dead_code_with(|node| !Call::of(node, attributes).effects().is_pure())
    }
}
