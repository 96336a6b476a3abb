//! `DeadCode`: dead-code elimination as a pass.

use super::pass::Pass;
use crate::error::Result;
use crate::graph_module::GraphModule;

/// Erases nodes that nobody uses and that are not impure: [`GraphModule::eliminate_dead_code`] as a
/// pass. Modules that are no longer called are removed too.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::passes::DeadCode;
/// let mut gm = symbolic_trace(traced!(|x: Float| { let _unused = (x * 2.0)?; x + 1.0 }))?;
/// assert_eq!(gm.apply(&DeadCode)?.erased, ["mul"]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadCode;

impl Pass for DeadCode {
    fn run(&self, gm: &mut GraphModule) -> Result<bool> {
        let erased = gm.eliminate_dead_code()?;
        Ok(erased + gm.delete_all_unused_submodules() > 0)
    }
}
