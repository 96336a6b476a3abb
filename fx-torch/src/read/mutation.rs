//! What a run writes: inputs, parameters and buffers, through whichever view, and by which outputs.
//!
//! Invariant: a run reads what it writes as it was before, and writes it at its end, all at once.

use std::sync::Arc;

use fx_nn::ir::{Function, NodeRef, Op};
use fx_nn::prelude::*;
use fx_nn::value::{NodeId, Proxy};
use fx_nn::{Error, Result, operator};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::held::Weight;
use super::memory::{Key, Memory};
use super::values;
use super::views;
use crate::call::{Call, proxy_of};
use crate::rules::{self, training};
use crate::schema::{Argument, Graph, Node, OutputSpec, Program};
use crate::written;

/// The operators that write more than their first argument: the names of what they write.
const WRITTEN: [(&str, [&str; 2], &str); 2] = [
    (
        "aten.batch_norm",
        ["running_mean", "running_var"],
        "training",
    ),
    (
        "aten.instance_norm",
        ["running_mean", "running_var"],
        "use_input_stats",
    ),
];

/// The statistics that a norm of batches writes, unless it does not.
pub(super) fn statistics(node: &Node) -> Option<[&str; 2]> {
    let operator = rules::short(&node.target).1;
    let (_, names, flag) = WRITTEN.iter().find(|(known, ..)| *known == operator)?;
    let of = |name: &str| node.inputs.iter().find(|input| input.name == name);
    let is_on = matches!(of(flag)?.arg, Argument::AsBool(true));
    let tensor = |name: &str| of(name)?.arg.tensor();
    let found = [tensor(names[0])?, tensor(names[1])?];
    is_on.then_some(found)
}

/// What is known of a program's memory without its values.
#[derive(Default)]
struct Scan<'n> {
    /// The input in whose memory a name lies.
    roots: FxHashMap<Key<'n>, &'n str>,
    written: FxHashSet<&'n str>,
    graphs: u32,
}

impl<'n> Scan<'n> {
    fn graph(&mut self, own: u32, graph: &'n Graph, training: bool) -> Result<()> {
        for node in &graph.nodes {
            let region = node
                .inputs
                .iter()
                .position(|input| matches!(input.arg, Argument::AsGraph(_)));
            if let Some(at) = region {
                self.region(own, node, at, training)?;
                continue;
            }
            if training {
                for name in statistics(node).into_iter().flatten() {
                    self.written.extend(self.roots.get(&(own, name)));
                }
            }
            let root = node.inputs.first().and_then(|input| input.arg.tensor());
            let Some(root) = root.and_then(|name| self.roots.get(&(own, name)).copied()) else {
                continue;
            };
            let writes = rules::in_place(&node.target).is_some();
            if writes {
                self.written.insert(root);
            }
            if writes || views::is_view(graph, node) {
                for name in values::names(&node.outputs)? {
                    self.roots.insert((own, name), root);
                }
            }
        }
        Ok(())
    }

    /// A region that is opened where it stands; others write nothing of what is outside.
    fn region(&mut self, outer: u32, node: &'n Node, at: usize, training: bool) -> Result<()> {
        let Argument::AsGraph(inner) = &node.inputs[at].arg else {
            return Ok(());
        };
        self.graphs += 1;
        let own = self.graphs;
        for (input, given) in inner.graph.inputs.iter().zip(&node.inputs[at + 1..]) {
            let root = given
                .arg
                .tensor()
                .and_then(|name| self.roots.get(&(outer, name)).copied());
            if let (Some(root), Some(name)) = (root, values::name(input)?) {
                self.roots.insert((own, name), root);
            }
        }
        self.graph(own, &inner.graph, training)?;
        let given = inner.graph.outputs.iter().map(values::name);
        for (name, given) in values::names(&node.outputs)?.into_iter().zip(given) {
            if let Some(root) = given?.and_then(|given| self.roots.get(&(own, given)).copied()) {
                self.roots.insert((outer, name), root);
            }
        }
        Ok(())
    }
}

/// What an output of a program is: a result, or what becomes of an input.
fn outputs<'n>(program: &'n Program, weights: &'n [Weight]) -> Result<Vec<Option<&'n str>>> {
    let mut names: FxHashMap<&str, &str> = FxHashMap::default();
    for weight in weights {
        names.entry(&weight.path).or_insert(&weight.name);
    }
    let weight = |path: &str| {
        let found = names.get(path).ok_or_else(|| {
            Error::msg(format_args!(
                "a run writes `{path}`, and nothing has the path"
            ))
        });
        found.map(|name| Some(*name))
    };
    let specs = program.graph_module.signature.output_specs.iter();
    let specs = specs.map(|spec| match spec {
        OutputSpec::UserOutput(_) => Ok(None),
        OutputSpec::BufferMutation {
            buffer_name: path, ..
        }
        | OutputSpec::ParameterMutation {
            parameter_name: path,
            ..
        } => weight(path),
        OutputSpec::UserInputMutation {
            user_input_name, ..
        } => Ok(Some(&**user_input_name)),
        // It is of no input, and so nothing becomes of it.
        OutputSpec::Token(_) => Ok(Some("")),
        _ => Err(Error::msg(
            "an output is a loss or a gradient: export the model without its training step",
        )),
    });
    specs.collect()
}

/// The inputs that nodes write.
fn written_by_nodes(program: &Program, training: bool) -> Result<FxHashSet<&str>> {
    let graph = &program.graph_module.graph;
    let mut scan = Scan::default();
    // An input that is a constant has no name.
    for name in graph
        .inputs
        .iter()
        .filter_map(|input| values::name(input).ok()?)
    {
        scan.roots.insert((0, name), name);
    }
    scan.graph(0, graph, training)?;
    Ok(scan.written)
}

/// The inputs that a run in training writes.
///
/// # Errors
/// Returns an error for an output that is neither a result nor written.
pub(crate) fn written<'n>(
    program: &'n Program,
    weights: &'n [Weight],
) -> Result<FxHashSet<&'n str>> {
    let mut written = written_by_nodes(program, true)?;
    written.extend(outputs(program, weights)?.into_iter().flatten());
    Ok(written)
}

/// What a run writes at its end.
pub(super) struct Ends<'n> {
    /// By input: what the program was given, and what it reads of it.
    begun: IndexMap<&'n str, (Value, Value)>,
    /// The inputs that nodes write.
    written: FxHashSet<&'n str>,
    outputs: Vec<Option<&'n str>>,
    /// The inputs that outputs are written to.
    ends: FxHashSet<&'n str>,
    /// Inputs that only training writes.
    counts: FxHashSet<&'n str>,
}

impl<'n> Ends<'n> {
    /// What a program writes, by its nodes and its outputs.
    ///
    /// # Errors
    /// Returns an error for an output that is neither a result nor written.
    pub fn new(program: &'n Program, weights: &'n [Weight], training: bool) -> Result<Self> {
        let counts = weights
            .iter()
            .filter(|weight| !training && counts_batches(&weight.path));
        let outputs = outputs(program, weights)?;
        Ok(Ends {
            begun: IndexMap::new(),
            written: written_by_nodes(program, training)?,
            ends: outputs.iter().flatten().copied().collect(),
            outputs,
            counts: counts.map(|weight| &*weight.name).collect(),
        })
    }

    /// What the program reads of an input: if it is written, the input as it was before. A parameter or a buffer is read
    /// in each run, also where nothing else has a say.
    ///
    /// # Errors
    /// Returns an error if it is written and no tensor.
    pub fn begin(&mut self, name: &'n str, given: Value, is_held: bool) -> Result<Value> {
        let is_written = self.written.contains(name) || self.ends.contains(name);
        let is_written = is_written && !self.counts.contains(name);
        if !is_written && !is_held {
            return Ok(given);
        }
        let read: Value = function!(written::copied).call_as((given.clone(),))?;
        if is_written {
            self.begun.insert(name, (given, read.clone()));
        }
        Ok(read)
    }

    /// Writes what the program has for its inputs at the end; gives its results.
    ///
    /// # Errors
    /// Returns an error if an input is no tensor.
    pub fn write(self, outputs: Vec<Value>, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        if outputs.len() != self.outputs.len() {
            return Err(Error::msg(format_args!(
                "the graph has {} outputs, and the signature names {}",
                outputs.len(),
                self.outputs.len()
            )));
        }
        let (mut results, mut ends) = (Vec::new(), IndexMap::new());
        for name in self
            .begun
            .keys()
            .filter(|name| self.written.contains(*name))
        {
            ends.insert(*name, memory.get(name)?);
        }
        for (becomes, value) in self.outputs.iter().zip(outputs) {
            match becomes {
                None => results.push(value),
                Some(name) => {
                    ends.insert(name, value);
                }
            }
        }
        for (name, value) in ends {
            let Some((given, read)) = self.begun.get(name) else {
                continue;
            };
            let node = |value: &Value| proxy_of(value).map(Proxy::node);
            let is_same = node(read).is_some() && node(read) == node(&value);
            if !is_same {
                let _: Value = function!(written::assign).call_as((given.clone(), value))?;
            }
        }
        Ok(results)
    }
}

/// A norm of batches in training, which moves its statistics towards the batch's.
///
/// # Errors
/// Returns an error if the arguments do not fit.
pub(super) fn norm<'n>(
    node: &'n Node,
    call: &Call<'n>,
    [mean, var]: [&'n str; 2],
    memory: &mut Memory<'n>,
) -> Result<()> {
    let given = training::norm(call)?;
    memory.write(mean, given.running_mean)?;
    memory.write(var, given.running_var)?;
    for name in values::names(&node.outputs)? {
        memory.insert(name, Value::object(given.y.clone()));
    }
    Ok(())
}

/// Whether a buffer counts batches, which evaluation does not.
fn counts_batches(path: &str) -> bool {
    path.rsplit('.').next() == Some("num_batches_tracked")
}

/// What is copied or written: a tensor of the module by path, or what a node gives.
#[derive(PartialEq, Eq)]
enum Source {
    Path(Arc<str>),
    Node(NodeId),
}

/// Whether a function gives memory of its own, whatever it is given.
fn is_fresh(function: Function) -> bool {
    [
        operator::add,
        operator::sub,
        operator::mul,
        operator::truediv,
        function!(ops::index_copy),
        function!(ops::index_put),
        function!(ops::matmul),
        function!(ops::select_scatter),
        function!(ops::slice_scatter),
        function!(ops::sum),
        function!(ops::mean),
    ]
    .contains(&function)
}

/// Takes away the copies of what a run does not write, and those that are read where a copy is made anyway.
///
/// # Errors
/// Returns no error for a graph that was read.
pub(crate) fn settle(module: &mut GraphModule) -> Result<()> {
    let first = |node: NodeRef<'_>| {
        let input = node.all_input_nodes().next()?;
        Some(match input.op() {
            Op::GetAttr(path) => Source::Path(path.clone()),
            _ => Source::Node(input.id()),
        })
    };
    let calls = |of: Function| {
        let nodes = module.graph().nodes();
        nodes.filter(move |node| matches!(node.op(), Op::CallFunction(own) if *own == of))
    };
    let assigned: Vec<Source> = calls(function!(written::assign))
        .filter_map(first)
        .collect();
    let copies: Vec<(NodeId, NodeId)> = calls(function!(written::copied))
        .filter(|node| {
            let is_written = first(*node).is_some_and(|source| assigned.contains(&source));
            let mut users = node.users();
            let is_fresh =
                |user: NodeRef<'_>| matches!(user.op(), Op::CallFunction(own) if is_fresh(*own));
            !is_written || users.all(is_fresh)
        })
        .filter_map(|node| Some((node.id(), node.all_input_nodes().next()?.id())))
        .collect();
    let mut graph = module.graph_mut();
    for (copy, source) in copies {
        graph.node_mut(copy)?.replace_all_uses_with(source)?;
        graph.erase_node(copy)?;
    }
    Ok(())
}
