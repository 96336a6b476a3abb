//! What the calls of a graph cost, read and hand on.
//!
//! Invariant: a value crosses every cut between the call that gives it and the last one that uses
//! it; tensors of the module cross none, since each stage reads its own.

use rustc_hash::FxHashMap;

use super::balance::Load;
use crate::graph_module::GraphModule;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::module::walk::{TensorKind, Visitor, walk};
use crate::value::handle::NodeId;
use crate::value::object::Object;

/// The calls of a graph in order, and how far each value is used.
pub(super) struct Calls {
    pub ids: Vec<NodeId>,
    /// The inputs and the calls in order, each with the place of the call that gives it (0 for
    /// inputs) and of the last one that uses it. The result of the graph is used by the last call.
    pub values: Vec<(NodeId, usize, usize)>,
    pub load: Load,
}

impl Calls {
    /// The calls of a graph; `cost` says what each costs.
    pub fn of(gm: &GraphModule, mut cost: impl FnMut(NodeRef<'_>) -> u64) -> Self {
        let graph = gm.graph();
        let mut ids = Vec::with_capacity(graph.len());
        let mut values: Vec<(NodeId, usize, usize)> = Vec::with_capacity(graph.len());
        let mut value_of = vec![None; graph.index_bound()];
        let mut load = Load::default();
        let mut weights = Weights::of(gm.attributes());
        let last_call = graph.nodes().filter(|node| node.op().is_call()).count();
        let last_call = last_call.saturating_sub(1);
        for node in graph.nodes() {
            let call = match node.op() {
                Op::GetAttr(_) => continue,
                Op::Output => last_call,
                _ => ids.len(),
            };
            for input in node.all_input_nodes() {
                if let Some(value) = value_of[input.index()] {
                    let (_, _, last): &mut (NodeId, usize, usize) = &mut values[value];
                    *last = call.max(*last);
                }
            }
            if *node.op() == Op::Output {
                load.reads
                    .iter_mut()
                    .last()
                    .into_iter()
                    .for_each(|reads| reads.extend(weights.read_by(node)));
            } else {
                // An input is there before the first call, wherever its node stands.
                let given = if node.op().is_call() { call } else { 0 };
                value_of[node.index()] = Some(values.len());
                values.push((node.id(), given, given));
            }
            if node.op().is_call() {
                ids.push(node.id());
                load.costs.push(cost(node));
                load.reads.push(weights.read_by(node));
            }
        }
        load.tensors = weights.bytes;
        load.crossing = crossing(gm, ids.len(), &values);
        Calls { ids, values, load }
    }
}

/// The bytes that cross the cut before each call. A value of unknown size counts as a byte, so that
/// fewer values are better than more.
fn crossing(gm: &GraphModule, calls: usize, values: &[(NodeId, usize, usize)]) -> Vec<u64> {
    let mut rises = vec![0i128; calls + 1];
    for (id, given, last) in values {
        if given == last {
            continue;
        }
        let node = gm.graph().node(*id);
        let meta = node.ok().and_then(|node| node.meta::<ValueMeta>());
        let bytes = meta.map_or(0, ValueMeta::bytes).max(1) as i128;
        rises[given + 1] += bytes;
        if let Some(behind) = rises.get_mut(last + 1) {
            *behind -= bytes;
        }
    }
    let sums = rises.into_iter().take(calls).scan(0i128, |sum, rise| {
        *sum += rise;
        Some(u64::try_from(*sum).unwrap_or(u64::MAX))
    });
    sums.collect()
}

/// The tensors of a graph's attributes, each once.
struct Weights<'a> {
    attributes: &'a Attributes,
    bytes: Vec<u64>,
    by_id: FxHashMap<u64, u32>,
    by_path: FxHashMap<&'a str, Vec<u32>>,
}

impl<'a> Weights<'a> {
    fn of(attributes: &'a Attributes) -> Self {
        Weights {
            attributes,
            bytes: Vec::new(),
            by_id: FxHashMap::default(),
            by_path: FxHashMap::default(),
        }
    }

    /// The tensors that a call reads: those of its module, and those that are passed to it.
    fn read_by(&mut self, node: NodeRef<'a>) -> Vec<u32> {
        let mut read = Vec::new();
        if let Op::CallModule(path) = node.op() {
            read.extend(self.at(path));
        }
        for input in node.all_input_nodes() {
            if let Op::GetAttr(path) = input.op() {
                read.extend(self.at(path));
            }
        }
        read
    }

    fn at(&mut self, path: &'a str) -> Vec<u32> {
        if let Some(known) = self.by_path.get(path) {
            return known.clone();
        }
        let mut found = Vec::new();
        if let Ok(module) = self.attributes.module(path) {
            self.add_all(module, &mut found);
        } else if let Ok(tensor) = self.attributes.tensor(path)
            && let Some(tensor) = tensor.as_object()
        {
            found.push(self.add(tensor));
        }
        self.by_path.insert(path, found.clone());
        found
    }

    fn add_all(&mut self, module: &dyn Module, found: &mut Vec<u32>) {
        struct All<'w, 'a>(&'w mut Weights<'a>, &'w mut Vec<u32>);
        impl Visitor for All<'_, '_> {
            fn tensor(&mut self, _: &str, _: TensorKind, tensor: &dyn Object) {
                self.1.push(self.0.add(tensor));
            }
        }
        walk(module, &mut All(self, found));
    }

    fn add(&mut self, tensor: &dyn Object) -> u32 {
        let next = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let id = tensor.object_id();
        if let Some(known) = id.and_then(|id| self.by_id.get(&id)) {
            return *known;
        }
        if let Some(id) = id {
            self.by_id.insert(id, next);
        }
        let bytes = ValueMeta::of(&tensor.to_value()).bytes();
        self.bytes.push(bytes as u64);
        next
    }
}
