//! `Root`: a program as a module whose trace is its graph. The nodes run one by one on tensors that are known or symbolic.
//!
//! Invariant: a node reads what stands before it, and what it writes is seen by all behind it.

mod layers;
mod memory;
mod values;
mod views;

use std::sync::Arc;

use fx_nn::ir::ParamSpec;
use fx_nn::module::{Component, Module, TensorKind, Walk, WalkMut};
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, placed};
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::FxHashSet;

pub(crate) use self::layers::Layers;
use self::layers::{Given, LayerCall, Step};
use self::memory::Memory;
use self::values::{argument, name, names};
use crate::call::Call;
use crate::places;
use crate::rules;
use crate::schema::{Argument, Graph, Node, Program};
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
    pub layers: Layers,
    pub arguments: Arc<Vec<Parameter>>,
    pub params: Vec<ParamSpec>,
    pub results: Tree,
}

impl Root {
    fn given(&self, args: &[&Value]) -> Result<Value> {
        let graph = &self.program.graph_module.graph;
        let mut memory = Memory::default();
        let mut kept: FxHashSet<&str> = FxHashSet::default();
        for weight in self.weights.iter() {
            let (_, tensor) = &self.tensors[&weight.path];
            memory.insert(&weight.name, Value::object(tensor.clone()));
            kept.insert(&weight.name);
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
                        memory.insert(name, value);
                        kept.insert(name);
                    }
                    Input::Fixed(name, value) => memory.insert(name, value.clone()),
                }
            }
        }
        let reader = Reader {
            kept,
            layers: &self.layers,
        };
        let results = reader.graph(graph, Some(&self.layers), &mut memory)?;
        if results.iter().any(rules::is_complex) {
            return Err(Error::msg(
                "a result is complex: give it by `torch.view_as_real`",
            ));
        }
        self.results.filled(&mut results.into_iter())
    }
}

/// What nodes are read with.
struct Reader<'n> {
    /// Names whose memory outlives a run: inputs, parameters, buffers.
    kept: FxHashSet<&'n str>,
    layers: &'n Layers,
}

impl<'n> Reader<'n> {
    /// The results of a graph. Layers are those of the program's own graph.
    fn graph(
        &self,
        graph: &'n Graph,
        layers: Option<&'n Layers>,
        memory: &mut Memory<'n>,
    ) -> Result<Vec<Value>> {
        for (index, node) in graph.nodes.iter().enumerate() {
            let step = layers.map_or(Step::Node, |layers| layers.step(index));
            let modules = places::modules(node);
            let mut modules: Vec<(&str, &str)> = modules
                .iter()
                .map(|around| (around.path, around.name()))
                .collect();
            if matches!(step, Step::Layer(_)) {
                // The call is one of the modules around the layer.
                modules.pop();
            }
            let place = places::location(node);
            let shown = place.to_string();
            let done = || match step {
                Step::Node => self.node(graph, node, memory),
                Step::Layer(call) => self.layer(call, memory),
                Step::Nothing => Ok(()),
            };
            placed(place, &modules, done).map_err(|error| {
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
        if rules::asserts(&node.target) {
            return Ok(());
        }
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
        let call = Call {
            target: &node.target,
            args: args.collect::<Result<Vec<_>>>()?,
            dtypes: node
                .inputs
                .iter()
                .map(|input| graph.dtype(&input.arg))
                .collect(),
        };
        let own = node.inputs.first().and_then(|input| match &input.arg {
            Argument::AsTensor(named) => Some(&*named.name),
            _ => None,
        });
        if let (Some(function), Some(own)) = (rules::in_place(&node.target), own) {
            let value = function(&call)?;
            return self.written(own, value, names(&node.outputs)?, memory);
        }
        let given = rules::run(&call)?;
        let own = own.filter(|_| views::is_view(&node.target));
        let mut put = |name: &'n str, index: Option<usize>| {
            let value = views::part(&given, index)?;
            match own {
                Some(own) => {
                    memory.insert_view(name, value, own, call.with_own(Value::None), index)
                }
                None => memory.insert(name, value),
            }
            Ok(())
        };
        match node.outputs.as_slice() {
            [Argument::AsTensors(all)] => {
                let mut all = all.iter().enumerate();
                all.try_for_each(|(at, named)| put(&named.name, Some(at)))
            }
            [one] => name(one)?.map_or(Ok(()), |name| put(name, None)),
            several => {
                for (at, output) in several.iter().enumerate() {
                    if let Some(name) = name(output)? {
                        put(name, Some(at))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// A call of a layer.
    fn layer(&self, call: &'n LayerCall, memory: &mut Memory<'n>) -> Result<()> {
        let mut given = CallArgs::default();
        let mut own = None;
        for (name, argument_of) in &call.args {
            let value = match argument_of {
                Given::One(one) => {
                    if let Argument::AsTensor(named) = one {
                        own.get_or_insert(&*named.name);
                    }
                    argument(one, memory)?
                }
                Given::Tuple(items) => {
                    let items = items.iter().map(|item| argument(item, memory));
                    Value::Tuple(items.collect::<Result<_>>()?)
                }
                Given::Plain(value) => value.clone(),
            };
            match name {
                None => given.args.push(value),
                Some(name) => given.kwargs.push(((*name).into(), value)),
            }
        }
        let layer = self.layers.modules.get(&call.path);
        let layer = layer.ok_or_else(|| Error::msg("the layer is missing"))?;
        let result: Value = layer.forward(given)?;
        if let (true, Some(own)) = (call.writes, own) {
            let value = Tensor::from_value(result.clone())?;
            return match call.results.first() {
                Some((name, _)) => self.written(own, value, [&**name], memory),
                None => Ok(()),
            };
        }
        for (name, at) in &call.results {
            let part =
                (at.iter()).try_fold(result.clone(), |whole, at| views::part(&whole, Some(*at)))?;
            memory.insert(name, part);
        }
        Ok(())
    }

    /// Writes a tensor; the results of what writes it are the tensor itself.
    fn written(
        &self,
        own: &'n str,
        value: Tensor,
        results: impl IntoIterator<Item = &'n str>,
        memory: &mut Memory<'n>,
    ) -> Result<()> {
        let root = memory.write(own, value)?;
        if self.kept.contains(root) {
            return Err(Error::msg(format_args!(
                "it writes `{root}`, which outlives the run: make a copy of it in `forward` first"
            )));
        }
        for name in results {
            let value = memory.get(own)?;
            let same = Call {
                target: views::SAME,
                args: vec![("self", Value::None)],
                dtypes: Vec::new(),
            };
            memory.insert_view(name, value, own, same, None);
        }
        Ok(())
    }

    /// An operator with a graph: what changes nothing but a mode is opened.
    fn higher_order(&self, node: &'n Node, at: usize, memory: &mut Memory<'n>) -> Result<()> {
        const OPENED: [&str; 2] = [
            "torch.ops.higher_order.wrap_with_set_grad_enabled",
            "torch.ops.higher_order.wrap_with_autocast",
        ];
        if !OPENED.contains(&&*node.target) {
            return Err(Error::msg(
                "branches and loops of exported programs are not read yet",
            ));
        }
        let Argument::AsGraph(inner) = &node.inputs[at].arg else {
            return Err(Error::msg("the operator has no graph"));
        };
        let mut own = Memory::default();
        for (input, given) in inner.graph.inputs.iter().zip(&node.inputs[at + 1..]) {
            if let Some(name) = name(input)? {
                own.insert(name, argument(&given.arg, memory)?);
            }
        }
        let results = self.graph(&inner.graph, None, &mut own)?;
        let mut all = Vec::new();
        for output in &node.outputs {
            match output {
                Argument::AsTensors(named) => all.extend(named.iter().map(|named| &*named.name)),
                other => all.extend(name(other)?),
            }
        }
        for (name, value) in all.into_iter().zip(results) {
            memory.insert(name, value);
        }
        Ok(())
    }
}

impl Component for Root {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| {
            for (path, layer) in &self.layers.modules {
                walk.child(path, layer);
            }
            for (path, (held, tensor)) in &self.tensors {
                if self.layers.held.contains(path) {
                    continue;
                }
                match held {
                    Held::Parameter => walk.child(path, tensor),
                    Held::Buffer | Held::Constant => walk.buffer(path, TensorKind::Buffer, tensor),
                }
            }
        });
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        for (path, layer) in &mut self.layers.modules {
            walk.child(path, layer);
        }
        for (path, (_, tensor)) in &mut self.tensors {
            if self.layers.held.contains(path) {
                continue;
            }
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
