//! Layers: the nodes of a module of `torch.nn` as one call of fx's layer, at the module's path and with its weights.
//!
//! Invariant: a layer stands for all nodes of a call, and each of their results that others read; other nodes stay.

mod attention;
mod found;
mod recurrent;
mod table;

use fx_nn::module::{ComponentExt, Module};
use fx_nn::prelude::*;
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) use self::found::Given;
use self::found::{Found, Layer, Weights};
use super::held::{Held, Weight};
use super::values::tensors;
use crate::places::{self, Around};
use crate::schema::{Graph, Node};

/// A call of a layer instead of nodes.
#[derive(Debug, Clone)]
pub(super) struct LayerCall {
    pub path: String,
    /// The arguments, by position or by name.
    pub args: Vec<(Option<&'static str>, Given)>,
    /// The results by name, each with where it stands in what the layer gives.
    pub results: Vec<(String, Vec<usize>)>,
    /// Whether the first argument becomes the result.
    pub writes: bool,
}

/// The layers of a graph, and the nodes that they stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
    pub modules: IndexMap<String, Box<dyn Module>>,
    /// The paths of tensors that layers hold.
    pub held: FxHashSet<String>,
    /// By the index of the last node that each stands for.
    calls: FxHashMap<usize, LayerCall>,
    instead_of: FxHashSet<usize>,
}

/// What is done at a node.
pub(super) enum Step<'l> {
    Node,
    Layer(&'l LayerCall),
    /// A layer does it at a later node.
    Nothing,
}

impl Layers {
    /// What is done at the node of an index.
    pub(super) fn step(&self, index: usize) -> Step<'_> {
        match (self.calls.get(&index), self.instead_of.contains(&index)) {
            (Some(call), _) => Step::Layer(call),
            (None, true) => Step::Nothing,
            (None, false) => Step::Node,
        }
    }

    /// The layers of a graph, of whose weights nodes write some by name.
    pub fn of(
        graph: &Graph,
        weights: &[Weight],
        tensors: &IndexMap<String, (Held, Tensor)>,
        written: &FxHashSet<&str>,
    ) -> Self {
        let named = weights.iter().filter_map(|weight| {
            let (_, tensor) = tensors.get(&weight.path)?;
            Some((&*weight.name, (&*weight.path, tensor)))
        });
        let named: Weights<'_> = named.collect();
        let readers = readers(graph);
        let found: Vec<(Group<'_>, Layer<'_>)> = groups(graph)
            .into_iter()
            .filter_map(|group| {
                let layer = layer(graph, &group, &named, &readers)?;
                Some((group, layer))
            })
            .collect();
        let written = written_outside(graph, &found, weights, written);
        let mut layers = Layers::default();
        let mut options: FxHashMap<&str, String> = FxHashMap::default();
        let shared = held(&found, tensors);
        for (group, layer) in found {
            let path = group.around.path;
            // A call with other options than the first is no call of the same layer.
            let first = options.entry(path).or_insert_with(|| layer.options.clone());
            if *first != layer.options {
                continue;
            }
            let Some(held) = shared.get(path) else {
                continue;
            };
            if held.iter().any(|path| written.contains(&**path)) {
                continue;
            }
            layers.held.extend(held.iter().cloned());
            let (Some(last), results) = (group.nodes.last(), layer.results) else {
                continue;
            };
            let call = LayerCall {
                path: path.to_string(),
                args: layer.args,
                results: (results.into_iter())
                    .map(|(name, at)| (name.to_string(), at))
                    .collect(),
                writes: layer.writes,
            };
            layers.calls.insert(*last, call);
            layers.instead_of.extend(&group.nodes);
            let modules = &mut layers.modules;
            modules.entry(path.to_string()).or_insert(layer.module);
        }
        layers
    }
}

/// The paths of tensors that a run writes and that are read where no layer holds them: nodes do both.
fn written_outside<'w>(
    graph: &Graph,
    found: &[(Group<'_>, Layer<'_>)],
    weights: &'w [Weight],
    written: &FxHashSet<&str>,
) -> FxHashSet<&'w str> {
    let mut paths: FxHashMap<usize, &str> = FxHashMap::default();
    for (group, _) in found {
        let nodes = group.nodes.iter();
        paths.extend(nodes.map(|index| (*index, group.around.path)));
    }
    let by_name = weights
        .iter()
        .filter(|weight| written.contains(&*weight.name));
    let by_name: FxHashMap<&str, &str> = by_name
        .map(|weight| (&*weight.name, &*weight.path))
        .collect();
    let mut outside: FxHashSet<&str> = FxHashSet::default();
    for (index, node) in graph.nodes.iter().enumerate() {
        for name in node.inputs.iter().flat_map(|input| tensors(&input.arg)) {
            let Some(path) = by_name.get(name) else {
                continue;
            };
            let inside = paths.get(&index).is_some_and(|around| {
                let inner = path.strip_prefix(around);
                inner.is_some_and(|inner| inner.starts_with('.'))
            });
            if !inside {
                outside.insert(path);
            }
        }
    }
    for name in graph.outputs.iter().flat_map(tensors) {
        outside.extend(by_name.get(name));
    }
    outside
}

/// The paths of tensors that each layer holds; a path below which the program has something else is left out.
fn held<'p>(
    found: &[(Group<'p>, Layer<'p>)],
    tensors: &IndexMap<String, (Held, Tensor)>,
) -> FxHashMap<&'p str, Vec<String>> {
    let mut all: FxHashMap<&str, Vec<String>> = FxHashMap::default();
    let mut own: FxHashMap<&str, FxHashSet<String>> = FxHashMap::default();
    for (group, layer) in found {
        let path = group.around.path;
        own.entry(path).or_insert_with(|| {
            let module = &*layer.module;
            let names = module.named_parameters().into_keys();
            names.chain(module.named_buffers().into_keys()).collect()
        });
        all.entry(path).or_default();
    }
    for path in tensors.keys() {
        for (at, _) in path.match_indices('.') {
            let (outer, inner) = (&path[..at], &path[at + 1..]);
            let Some(names) = own.get(outer) else {
                continue;
            };
            match names.contains(inner) {
                true => {
                    if let Some(held) = all.get_mut(outer) {
                        held.push(path.clone());
                    }
                }
                false => drop(all.remove(outer)),
            }
        }
    }
    let paths: Vec<&str> = all.keys().copied().collect();
    for path in paths {
        let outer = path.match_indices('.').map(|(at, _)| &path[..at]);
        for outer in outer {
            all.remove(outer);
        }
    }
    all
}

/// The nodes of a call of a module that compute something, by index.
struct Group<'p> {
    around: Around<'p>,
    nodes: Vec<usize>,
}

/// The calls of modules that are the innermost around nodes which stand together.
fn groups(graph: &Graph) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // Calls that are interrupted by nodes of others.
    let mut parted: FxHashSet<&str> = FxHashSet::default();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut open = false;
    for (index, node) in graph.nodes.iter().enumerate() {
        if !computes(node) {
            continue;
        }
        let Some(around) = places::modules(node).pop() else {
            open = false;
            continue;
        };
        match groups.last_mut() {
            Some(group) if open && group.around.call == around.call => group.nodes.push(index),
            _ => {
                if !seen.insert(around.call) {
                    parted.insert(around.call);
                }
                let nodes = vec![index];
                groups.push(Group { around, nodes });
            }
        }
        open = true;
    }
    groups.retain(|group| !parted.contains(group.around.call));
    groups
}

/// Whether a node gives more than sizes.
fn computes(node: &Node) -> bool {
    node.outputs
        .iter()
        .any(|output| !tensors(output).is_empty())
}

/// The last node that reads each name; the graph's results are read behind all nodes.
fn readers(graph: &Graph) -> FxHashMap<&str, usize> {
    let mut last: FxHashMap<&str, usize> = FxHashMap::default();
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in &node.inputs {
            last.extend(tensors(&input.arg).into_iter().map(|name| (name, index)));
        }
    }
    for output in &graph.outputs {
        let read = tensors(output).into_iter();
        last.extend(read.map(|name| (name, usize::MAX)));
    }
    last
}

/// The layer that a group is.
fn layer<'p>(
    graph: &'p Graph,
    group: &Group<'p>,
    weights: &'p Weights<'p>,
    readers: &FxHashMap<&'p str, usize>,
) -> Option<Layer<'p>> {
    let rule = table::rule(group.around.class)?;
    let found = Found {
        path: group.around.path,
        nodes: group.nodes.iter().map(|at| &graph.nodes[*at]).collect(),
        graph,
        weights,
    };
    let layer = rule(&found)?;
    // What is read outside of the group has to be a result of the layer.
    let last = *group.nodes.last()?;
    let is_result = |name: &str| layer.results.iter().any(|(known, _)| *known == name);
    let fits = found.nodes.iter().all(|node| {
        let mut given = node.outputs.iter().flat_map(tensors);
        given.all(|name| readers.get(name).is_none_or(|at| *at <= last) || is_result(name))
    });
    // Sizes that are read of what is inside stay with the nodes that they are read of.
    let inside = |name: &str| {
        let mut nodes = found.nodes.iter();
        nodes.any(|node| {
            node.outputs
                .iter()
                .any(|output| tensors(output).contains(&name))
        })
    };
    let first = *group.nodes.first()?;
    let is_asked = (first..last).any(|at| {
        let node = &graph.nodes[at];
        let mut read = node.inputs.iter().flat_map(|input| tensors(&input.arg));
        !computes(node) && read.any(&inside)
    });
    (fits && !is_asked).then_some(layer)
}
