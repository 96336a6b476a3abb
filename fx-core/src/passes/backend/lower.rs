//! `Backend`, and `GraphModule::lower`: parts of a graph as a backend's code, and back.
//!
//! Invariant: the graph of a part stays beside its code, and says what is printed, saved and edited.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::partition::{Colour, Partitioner, colours, part_from_readers};
use super::support::{Metas, Support};
use crate::error::Result;
use crate::graph_module::GraphModule;
use crate::graph_module::compiled::Executable;
use crate::ir::node::NodeRef;
use crate::ir::operator;
use crate::ir::value_meta::ValueMeta;
use crate::location::SourceLocation;
use crate::module::attributes::within;
use crate::module::call::{Call, Callee};
use crate::passes::split::parts::{Parts, SplitPart};
use crate::region::region::Region;
use crate::value::handle::NodeId;

/// An engine that runs parts of a graph.
pub trait Backend {
    /// Its name, which names the parts: `chains_0`.
    fn name(&self) -> &str;

    /// Whether it can run a call.
    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support;

    /// Whether a part is worth it: a part of two additions may cost more to enter than it gains.
    fn worth(&self, gm: &GraphModule, part: &Region) -> bool {
        let _ = (gm, part);
        true
    }

    /// Changes a module whose parts it is about to take: a backend for inference freezes the
    /// parameters.
    ///
    /// # Errors
    /// Returns an error if that fails; nothing changes then.
    fn prepare(&self, module: &mut GraphModule) -> Result<()> {
        let _ = module;
        Ok(())
    }

    /// Makes code of a part. `inputs` says what is known of the value of each placeholder.
    ///
    /// # Errors
    /// Returns an error if it cannot: the part is left as it is, and the report has the error.
    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>>;
}

/// What a backend took of a graph, and what it left.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LowerReport {
    /// The parts that are the backend's code now.
    pub parts: Vec<SplitPart>,
    /// The calls that stay in the graph.
    pub left: Vec<LeftNode>,
    /// Parts that the backend could not make code of, by path, with its error.
    pub failed: Vec<(Arc<str>, String)>,
}

impl LowerReport {
    /// Adds the report of a side of a branch or loop, which is at a path.
    fn join(&mut self, path: &str, inside: LowerReport) {
        let below = |inner: &str| -> Arc<str> { within(path, inner).into() };
        self.parts.extend(inside.parts.into_iter().map(|mut part| {
            part.path = below(&part.path);
            part
        }));
        self.left.extend(inside.left);
        let failed = inside.failed.into_iter();
        self.failed
            .extend(failed.map(|(inner, error)| (below(&inner), error)));
    }
}

impl fmt::Display for LowerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} parts, {} calls left",
            self.parts.len(),
            self.left.len()
        )?;
        for (path, error) in &self.failed {
            writeln!(f, "failed: {path}: {error}")?;
        }
        for node in &self.left {
            writeln!(f, "left: {node}")?;
        }
        Ok(())
    }
}

/// A call that a backend left in the graph.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftNode {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its line in the source.
    pub location: Option<SourceLocation>,
    /// Why it was left.
    pub reason: String,
}

impl fmt::Display for LeftNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}: {}", self.name, self.reason)
    }
}

impl LeftNode {
    fn new(node: NodeRef<'_>, reason: impl Into<String>) -> Self {
        LeftNode {
            node: node.id(),
            name: node.name().to_string(),
            location: node.location().cloned(),
            reason: reason.into(),
        }
    }
}

impl GraphModule {
    /// Replaces the parts that a backend can run by its code. Each part becomes a graph module
    /// under a path, which is printed, saved and edited as what it is and runs the backend's code;
    /// after an edit it runs its graph. [`decompile`](GraphModule::decompile) puts the nodes back.
    /// The sides of branches and the bodies of loops are lowered too.
    ///
    /// # Errors
    /// Returns an error if the parts cannot be moved; nothing changes then. A part that the backend
    /// fails to compile is no error: it stays a graph, and the report names it.
    pub fn lower<B: Backend + ?Sized>(&mut self, backend: &B) -> Result<LowerReport> {
        self.edit(|gm| {
            let mut report = gm.lower_graph(backend)?;
            gm.for_each_side(|path, side| {
                let inside = side.lower(backend)?;
                report.join(path, inside);
                Ok(())
            })?;
            Ok(report)
        })
    }

    /// Lowers the graph itself, without branches and loops.
    fn lower_graph<B: Backend + ?Sized>(&mut self, backend: &B) -> Result<LowerReport> {
        let mut left = Vec::new();
        // What another backend has made code of stays that.
        let done: FxHashSet<NodeId> = (self.compiled_parts())
            .filter(|(path, _)| {
                let module = self.submodule_as::<GraphModule>(path).ok();
                let of = module.and_then(|module| Some(module.compiled()?.backend().to_string()));
                of.is_some_and(|of| of != backend.name())
            })
            .map(|(_, call)| call)
            .collect();
        // An element of what such a part gives is an input: nothing is known of the part's results together.
        let is_element = |node: NodeRef<'_>| {
            node.function() == Some(operator::getitem)
                && node.all_input_nodes().any(|of| done.contains(&of.id()))
        };
        // A branch or a loop stays in the graph: its sides are lowered by themselves.
        let supports = |call: &Call<'_>, metas: &Metas<'_>| match call.callee() {
            _ if done.contains(&call.node().id()) || is_element(call.node()) => {
                Support::no("another backend has made code of it")
            }
            Callee::Module(module) if !module.graph_names().is_empty() => {
                Support::no("it decides when it runs, and its sides are lowered by themselves")
            }
            _ => backend.supports(call, metas),
        };
        let mut before = colours(self, supports, |node, reason| {
            left.push(LeftNode::new(node, reason));
        })?;
        if before.contains(&Colour::Follows) {
            part_from_readers(self, &before)?;
            left.clear();
            before = colours(self, supports, |node, reason| {
                left.push(LeftNode::new(node, reason));
            })?;
        }
        let is_worth = |region: &Region| backend.worth(self, region);
        let regions = Partitioner::new().regions(self, before.clone(), &is_worth);
        let (paths, part_of) = self.assign(&regions, backend.name(), "lowering")?;
        for node in self.graph().nodes() {
            let at = node.index();
            if before[at].is_taken() && part_of[at].is_none() {
                left.push(LeftNode::new(node, "its part is not worth it"));
            }
        }
        self.edit(|gm| {
            if !regions.is_empty() {
                backend.prepare(gm)?;
            }
            let made = gm.move_into_parts(&Parts::in_place(&paths, &part_of))?;
            let mut report = LowerReport {
                parts: Vec::with_capacity(made.len()),
                left,
                failed: Vec::new(),
            };
            for part in made {
                let module = gm.submodule_as_mut::<GraphModule>(&part.path)?;
                let inputs = module.graph().placeholders();
                let inputs: Vec<Option<ValueMeta>> =
                    inputs.map(|input| input.meta().cloned()).collect();
                match backend.compile(module, &inputs) {
                    Ok(executable) => {
                        module.set_executable(backend.name(), executable);
                        report.parts.push(part);
                    }
                    Err(error) => {
                        gm.put_inline(part.call)?;
                        report.failed.push((part.path, error.to_string()));
                    }
                }
            }
            gm.fill_shapes();
            Ok(report)
        })
    }

    /// Puts the nodes of every part that a backend took back into the graph, and has this module run
    /// its graph. Returns how many parts there were. Nodes have new names, since no name is given
    /// twice.
    ///
    /// # Errors
    /// Returns an error if a part cannot be put back; nothing changes then.
    pub fn decompile(&mut self) -> Result<usize> {
        self.edit(|gm| {
            let calls: Vec<NodeId> = gm.compiled_parts().map(|(_, call)| call).collect();
            for call in &calls {
                gm.put_inline(*call)?;
            }
            let mut count = calls.len();
            gm.for_each_side(|_, side| {
                count += side.decompile()?;
                Ok(())
            })?;
            gm.fill_shapes();
            gm.remove_executable();
            Ok(count)
        })
    }
}
