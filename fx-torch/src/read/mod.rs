//! `Root`: a program as a module whose trace is its graph. The nodes run one by one on tensors that are known or symbolic.
//!
//! Invariant: a node reads what stands before it, and what it writes is seen by all behind it.

mod autocast;
mod control;
mod evaluation;
mod memory;
mod mutation;
mod ranges;
mod strides;
mod values;
mod views;

use std::sync::Arc;

use fx_nn::ir::ParamSpec;
use fx_nn::module::{Component, Module, TensorKind, Walk, WalkMut};
use fx_nn::prelude::*;
use fx_nn::trace::placed;
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::FxHashSet;

use self::memory::{Key, Memory};
pub(crate) use self::mutation::settle;
use self::values::{argument, name, names};
use self::views::Part;
use crate::call::Call;
use crate::places;
use crate::rules;
use crate::schema::{Argument, Graph, Node, Program, Range};
use crate::tree::Tree;

/// What a tensor of the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Parameter,
    Buffer,
    Constant,
}

/// A tensor of the program: the name that nodes read it by, and its path.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    pub name: String,
    pub path: String,
}

/// An input of the program.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A run gives it.
    Given(String),
    /// It is what it was when the program was exported.
    Fixed(String, Value),
}

/// An argument of `forward`, with its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub tree: Tree,
    pub inputs: Vec<Input>,
    /// Whether a run gives something of it.
    pub is_given: bool,
}

/// A program with its tensors by path.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub program: Arc<Program>,
    pub tensors: IndexMap<String, (Held, Tensor)>,
    pub weights: Arc<Vec<Weight>>,
    pub arguments: Arc<Vec<Parameter>>,
    pub params: Vec<ParamSpec>,
    pub results: Tree,
    /// Whether it computes as it was exported, and not as in evaluation.
    pub training: bool,
}

impl Root {
    fn given(&self, args: &[&Value]) -> Result<Value> {
        let graph = &self.program.graph_module.graph;
        let mut memory = Memory::default();
        let mut kept: FxHashSet<Key<'_>> = FxHashSet::default();
        let mut ends = mutation::Ends::new(&self.program, &self.weights, self.training)?;
        for weight in self.weights.iter() {
            let (held, tensor) = &self.tensors[&weight.path];
            let is_held = *held != Held::Constant;
            let value = ends.begin(&weight.name, Value::object(tensor.clone()), is_held)?;
            memory.insert(&weight.name, value);
            kept.insert((0, &weight.name));
        }
        let mut args = args.iter();
        for argument in self.arguments.iter() {
            let mut leaves = Vec::new();
            if argument.is_given {
                let value = args
                    .next()
                    .ok_or_else(|| Error::msg("an argument is missing"))?;
                argument.tree.flatten(value, &mut leaves)?;
            }
            let mut leaves = leaves.into_iter();
            for input in &argument.inputs {
                let leaf = leaves.next();
                match input {
                    Input::Given(name) => {
                        let value =
                            leaf.ok_or_else(|| Error::msg(format_args!("`{name}` is missing")))?;
                        memory.insert(name, ends.begin(name, value, false)?);
                        kept.insert((0, name));
                    }
                    Input::Fixed(name, value) => memory.insert(name, value.clone()),
                }
            }
        }
        let reader = Reader {
            kept,
            is_program: true,
            training: self.training,
            autocast: None,
            ranges: &self.program.range_constraints,
        };
        let results = reader.graph(graph, &mut memory)?;
        let results = ends.write(results, &mut memory)?;
        self.results.filled(&mut results.into_iter())
    }
}

/// What nodes are read with.
struct Reader<'n> {
    /// Names whose memory is that of an input of the graph.
    kept: FxHashSet<Key<'n>>,
    /// Whether that of the program is read, which may write its inputs.
    is_program: bool,
    /// Whether what differs in training is as it was exported.
    training: bool,
    /// The element type of a region of `torch.autocast`.
    autocast: Option<DType>,
    ranges: &'n IndexMap<String, Range>,
}

impl<'n> Reader<'n> {
    fn graph(&self, graph: &'n Graph, memory: &mut Memory<'n>) -> Result<Vec<Value>> {
        for node in &graph.nodes {
            let modules = places::modules(node);
            let modules: Vec<(&str, &str)> = modules
                .iter()
                .map(|(path, class)| (&**path, &**class))
                .collect();
            let place = places::location(node);
            let shown = place.to_string();
            placed(place, &modules, || self.node(graph, node, memory)).map_err(|error| {
                let name = node.name.as_deref().unwrap_or_default();
                Error::msg(format_args!(
                    "`{name}` ({}) at {shown}: {error}",
                    node.target
                ))
            })?;
        }
        let outputs = graph.outputs.iter();
        outputs.map(|output| argument(output, memory)).collect()
    }

    fn node(&self, graph: &'n Graph, node: &'n Node, memory: &mut Memory<'n>) -> Result<()> {
        let graph_at = node
            .inputs
            .iter()
            .position(|input| matches!(input.arg, Argument::AsGraph(_)));
        if let Some(at) = graph_at {
            return self.higher_order(node, at, memory);
        }
        let args = node
            .inputs
            .iter()
            .map(|input| Ok((&*input.name, argument(&input.arg, memory)?)));
        let mut call = Call {
            target: &node.target,
            args: args.collect::<Result<Vec<_>>>()?,
            dtypes: node
                .inputs
                .iter()
                .map(|input| graph.dtype(&input.arg))
                .collect(),
        };
        call = ranges::known(call, graph, node, self.ranges);
        if !self.training {
            call = evaluation::of(call);
        }
        if let Some(lower) = self.autocast {
            call = autocast::cast(call, lower)?;
        }
        if self.training
            && let Some(statistics) = mutation::statistics(node)
        {
            return mutation::norm(node, &call, statistics, memory);
        }
        let own = node.inputs.first().and_then(|input| match &input.arg {
            Argument::AsTensor(named) => Some(&*named.name),
            _ => None,
        });
        if let (Some(function), Some(own)) = (rules::in_place(&node.target), own) {
            let value = function(&call)?;
            let root = memory.write(own, value)?;
            if !self.is_program && self.kept.contains(&root) {
                return Err(Error::msg(format_args!(
                    "a branch or a loop writes its input `{}`: make a copy of it there first",
                    root.1
                )));
            }
            for name in names(&node.outputs)? {
                // The result is the tensor that was written.
                let value = memory.get(own)?;
                let same = Call {
                    target: views::SAME,
                    args: vec![("self", Value::None)],
                    dtypes: call.dtypes.clone(),
                };
                memory.insert_view(name, value, own, same, None);
            }
            return Ok(());
        }
        let given = rules::run(&call)?;
        let own = own.filter(|_| views::is_view(graph, node));
        let mut put = |name: &'n str, index: Option<Part>| {
            let value = views::part(&given, index.map(|part| part.at))?;
            match own {
                Some(own) => {
                    memory.insert_view(name, value, own, call.with_own(Value::None), index)
                }
                None => memory.insert(name, value),
            }
            Ok(())
        };
        let all = match node.outputs.as_slice() {
            [Argument::AsTensors(all)] => all.iter().map(|named| Some(&*named.name)).collect(),
            [one] => return name(one)?.map_or(Ok(()), |name| put(name, None)),
            several => several.iter().map(name).collect::<Result<Vec<_>>>()?,
        };
        let of = all.len();
        for (at, name) in all.into_iter().enumerate() {
            if let Some(name) = name {
                put(name, Some(Part { at, of }))?;
            }
        }
        Ok(())
    }
}

impl Component for Root {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| {
            for (path, (held, tensor)) in &self.tensors {
                match held {
                    Held::Parameter => walk.child(path, tensor),
                    Held::Buffer | Held::Constant => walk.buffer(path, TensorKind::Buffer, tensor),
                }
            }
        });
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        for (path, (_, tensor)) in &mut self.tensors {
            walk.child(path, tensor);
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

impl Module for Root {
    fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        *out = self.given(args)?;
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.clone())
    }
}
