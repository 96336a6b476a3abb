//! `Region`: a branch, a loop or a scan that a graph calls, by what it is, and its graphs.

use std::any::Any;

use fx_core::control::{Cond, Scan, While};
use fx_core::ir::Effects;
use fx_core::module::Module;
use fx_core::{Error, GraphModule, Result};

/// A module that has graphs and decides when it runs which of them run.
pub(crate) enum Region<'m> {
    Branch(&'m Cond),
    Loop(&'m While),
    Scan(&'m Scan),
}

impl<'m> Region<'m> {
    pub fn of(module: &'m dyn Module) -> Option<Self> {
        let any: &dyn Any = module;
        if let Some(branch) = any.downcast_ref::<Cond>() {
            return Some(Region::Branch(branch));
        }
        if let Some(turns) = any.downcast_ref::<While>() {
            return Some(Region::Loop(turns));
        }
        any.downcast_ref::<Scan>().map(Region::Scan)
    }

    pub fn module(&self) -> &'m dyn Module {
        match self {
            Region::Branch(branch) => *branch,
            Region::Loop(turns) => *turns,
            Region::Scan(scan) => *scan,
        }
    }

    /// Its graphs, in the order of their names.
    pub fn graphs(&self) -> Vec<&'m GraphModule> {
        match self {
            Region::Branch(branch) => vec![branch.then(), branch.otherwise()],
            Region::Loop(turns) => vec![turns.body()],
            Region::Scan(scan) => vec![scan.step()],
        }
    }

    /// An error if running a graph again would draw other numbers, or write again.
    pub fn is_repeatable(&self) -> Result<()> {
        for gm in self.graphs() {
            let effects = gm.effects();
            if effects.contains(Effects::RANDOM) {
                return Err(Error::msg(
                    "it draws random numbers inside, and its gradient would draw others: draw before it, and use what was drawn inside",
                ));
            }
            if effects.contains(Effects::WRITES) {
                return Err(Error::msg(
                    "it writes statistics inside, and its gradient would write them again: call `eval()`, or use a norm without running statistics",
                ));
            }
        }
        Ok(())
    }
}
