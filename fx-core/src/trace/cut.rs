//! What was cut out of a trace's graph, into the graphs of branches and loops.
//!
//! Invariant: an argument that names a node of it is an error, which says where the node is.

use std::panic::Location;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::ir::argument::{Args, Kwargs};
use crate::value::handle::NodeId;

/// What was cut out of a trace's graph.
#[derive(Default)]
pub(super) struct Cut {
    pub nodes: FxHashMap<NodeId, CutNode>,
    /// How many calls of each module are among them.
    pub calls: FxHashMap<Arc<str>, u32>,
}

/// A node that is now in a side's own graph.
pub(super) struct CutNode {
    pub name: String,
    pub what: &'static str,
    pub caller: &'static Location<'static>,
}

impl Cut {
    /// Returns an error if an argument names a node that was cut.
    #[inline]
    pub fn check(&self, args: &Args, kwargs: &Kwargs) -> Result<()> {
        match self.nodes.is_empty() {
            true => Ok(()),
            false => self.check_all(args, kwargs),
        }
    }

    #[cold]
    fn check_all(&self, args: &Args, kwargs: &Kwargs) -> Result<()> {
        let mut found = None;
        let mut look = |node: NodeId| {
            found = found.or(self.nodes.get(&node));
        };
        args.iter().for_each(|arg| arg.for_each_node(&mut look));
        kwargs
            .iter()
            .for_each(|(_, arg)| arg.for_each_node(&mut look));
        found.map_or(Ok(()), |node| Err(node.used_outside()))
    }
}

impl CutNode {
    /// The error of a use outside.
    fn used_outside(&self) -> Error {
        let CutNode { name, what, caller } = self;
        Error::msg(format_args!(
            "%{name} was computed in {what} that a traced value decides ({}:{}), and is used outside of it: return it from there",
            caller.file(),
            caller.line()
        ))
    }
}
