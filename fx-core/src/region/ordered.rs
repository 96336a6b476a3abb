//! `Ordered`: the nodes whose relative order is part of what a graph computes.
//!
//! Invariant: any other node computes the same result wherever it stands after its inputs, and in
//! every run on the same inputs and parameters.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::function::Effects;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::Attributes;
use crate::module::call::{Call, Callee};
use crate::module::module::Module;
use crate::module::walk::{TensorKind, Visitor, walk};
use crate::value::object::Object;

/// The nodes whose relative order is part of what a graph computes, and which passes neither merge
/// nor move past each other: impure nodes, and nodes that read a tensor which an impure call may
/// change (a tensor of the called module or one passed to the call). Created by
/// [`GraphModule::ordered`](crate::GraphModule::ordered).
#[derive(Debug, Clone)]
pub struct Ordered {
    /// By the node's index.
    flags: Vec<bool>,
}

impl Ordered {
    pub(crate) fn of(graph: &Graph, attributes: &Attributes) -> Self {
        let mut flags = vec![false; graph.index_bound()];
        let mut changing = Changing::default();
        let mut modules: FxHashMap<&str, Effects> = FxHashMap::default();
        for node in graph.nodes() {
            let call = Call::of(node, attributes);
            let effects = match (node.op(), call.callee()) {
                (Op::Placeholder(_) | Op::Output, _) => Effects::PURE,
                (Op::CallModule(path), Callee::Module(module)) => {
                    *modules.entry(path).or_insert_with(|| {
                        let effects = call.effects();
                        if effects.contains(Effects::WRITES) {
                            changing.add_tensors_of(path, *module);
                        }
                        effects
                    })
                }
                _ => call.effects(),
            };
            flags[node.index()] = !effects.is_pure();
            if effects.contains(Effects::WRITES) {
                changing.add_inputs_of(node);
            }
        }
        if !changing.is_empty() {
            let mut reads = vec![false; graph.index_bound()];
            for node in graph.nodes().filter(|node| *node.op() != Op::Output) {
                // A value computed from such a tensor may share its storage.
                let is_read = match node.op() {
                    Op::GetAttr(path) => changing.contains(path, attributes),
                    _ => node.all_input_nodes().any(|input| reads[input.index()]),
                };
                reads[node.index()] = is_read;
                flags[node.index()] |= is_read;
            }
        }
        Ordered { flags }
    }

    /// Whether a node is one of them. A node that was added later could be anything, so it counts.
    pub fn contains(&self, node: NodeRef<'_>) -> bool {
        self.flags.get(node.index()).copied().unwrap_or(true)
    }
}

/// Tensors that impure calls may change.
#[derive(Default)]
struct Changing {
    tensors: FxHashSet<u64>,
    paths: FxHashSet<Arc<str>>,
    modules: FxHashSet<Arc<str>>,
}

impl Changing {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.modules.is_empty()
    }

    fn add_tensors_of(&mut self, path: &Arc<str>, module: &dyn Module) {
        struct Ids<'s>(&'s mut FxHashSet<u64>);
        impl Visitor for Ids<'_> {
            fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
                self.0.extend(tensor.object_id());
            }
        }
        self.modules.insert(path.clone());
        walk(module, &mut Ids(&mut self.tensors));
    }

    fn add_inputs_of(&mut self, node: NodeRef<'_>) {
        let inputs = node.all_input_nodes();
        self.paths
            .extend(inputs.filter_map(|input| match input.op() {
                Op::GetAttr(path) => Some(path.clone()),
                _ => None,
            }));
    }

    fn contains(&self, path: &Arc<str>, attributes: &Attributes) -> bool {
        let tensor = attributes.tensor(path).ok();
        let id = tensor.and_then(|tensor| tensor.as_object()?.object_id());
        self.paths.contains(path)
            || id.is_some_and(|id| self.tensors.contains(&id))
            || self.modules.contains(path)
            || path
                .match_indices('.')
                .any(|(dot, _)| self.modules.contains(&path[..dot]))
    }
}
