//! `Root`: a program as a module whose trace is its graph. The nodes run one by one on tensors that are known or symbolic.
//!
//! Invariant: a node reads what stands before it, and what it writes is seen by all behind it.

mod autocast;
mod control;
mod evaluation;
mod held;
mod layers;
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
use fx_nn::trace::{CallArgs, placed};
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::FxHashSet;

pub(crate) use self::held::{Held, Input, Parameter, Weight};
pub(crate) use self::layers::Layers;
use self::layers::{Given, LayerCall, Step};
use self::memory::{Key, Memory};
pub(crate) use self::mutation::{settle, written};
use self::values::{argument, name, names};
use self::views::Part;
use crate::call::{Call, proxy_of};
use crate::element;
use crate::known::{self, Known};
use crate::opaque::{self, Leaf, Opaque};
use crate::places::{self, Around};
use crate::rules;
use crate::schema::{Argument, Graph, InputSpec, Node, Program, Range};
use crate::tree::Tree;

/// A program with its tensors by path.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub program: Arc<Program>,
    pub tensors: IndexMap<String, (Held, Tensor)>,
    pub weights: Arc<Vec<Weight>>,
    pub layers: Layers,
    /// Operators that are not known, by the names of their first results.
    pub opaque: IndexMap<String, Leaf>,
    pub arguments: Arc<Vec<Parameter>>,
    pub params: Vec<ParamSpec>,
    pub results: Tree,
    /// Whether it computes as it was exported, and not as in evaluation.
    pub training: bool,
}

impl Root {
    fn given(&self, args: &[&Value]) -> Result<Value> {
        let graph = &self.program.graph_module.graph;
        let _known = known::Scope::new();
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
        for input in &self.program.graph_module.signature.input_specs {
            if let InputSpec::Token { arg } = input {
                memory.insert(&arg.name, Value::None);
            }
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
                    Input::Given(name, _) => {
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
            layers: &self.layers,
            opaque: &self.opaque,
            ranges: &self.program.range_constraints,
        };
        let results = reader.graph(graph, Some(&self.layers), &mut memory)?;
        if results.iter().any(rules::is_complex) {
            return Err(Error::msg(
                "a result is complex: give it by `torch.view_as_real`",
            ));
        }
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
    layers: &'n Layers,
    opaque: &'n IndexMap<String, Leaf>,
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
            let around = places::modules(node);
            let calls: Vec<String> = around.iter().map(Around::numbered_path).collect();
            let names = around.iter().map(Around::name);
            let mut modules: Vec<(&str, &str)> =
                calls.iter().map(String::as_str).zip(names).collect();
            if matches!(step, Step::Layer(_)) {
                // The call is one of the modules around the layer.
                modules.pop();
            }
            let place = places::location(node);
            let shown = place.to_string();
            let done = || match step {
                Step::Node => self.node(graph, node, memory),
                Step::Layer(call) => self.layer(call, (graph, node), memory),
                Step::Nothing => Ok(()),
            };
            placed(place, &modules, done)
                .and_then(|()| self.noted(graph, &node.outputs, memory))
                .map_err(|error| {
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

    /// Notes what the file says of tensors of a branch or a loop.
    fn noted(
        &self,
        graph: &'n Graph,
        arguments: &'n [Argument],
        memory: &mut Memory<'n>,
    ) -> Result<()> {
        if self.is_program {
            return Ok(());
        }
        for name in names(arguments)? {
            let Some(meta) = graph.tensor_values.get(name) else {
                continue;
            };
            if let Some(proxy) = proxy_of(&memory.get(name)?) {
                let known = Known {
                    rank: meta.sizes.len(),
                    dtype: element::dtype(meta.dtype).ok(),
                };
                known::note(proxy, known);
            }
        }
        Ok(())
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
            return self.written(own, value, names(&node.outputs)?, memory);
        }
        let given = match self.leaf(node) {
            Some(leaf) => leaf.forward(CallArgs {
                args: call.args.iter().map(|(_, value)| value.clone()).collect(),
                kwargs: Vec::new(),
            })?,
            None => rules::run(&call)?,
        };
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

    /// The leaf of a node whose operator is not known.
    fn leaf(&self, node: &Node) -> Option<&'n Opaque> {
        let leaf = self.opaque.get(opaque::first_result(node)?);
        leaf.filter(|_| self.is_program).map(|leaf| &leaf.module)
    }

    /// A call of a layer, which stands for nodes up to this one.
    fn layer(
        &self,
        call: &'n LayerCall,
        (graph, node): (&'n Graph, &'n Node),
        memory: &mut Memory<'n>,
    ) -> Result<()> {
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
        let first = node.inputs.first().and_then(|input| match &input.arg {
            Argument::AsTensor(named) => Some(&*named.name),
            _ => None,
        });
        if let ([(name, at)], Some(own)) = (call.results.as_slice(), own)
            && (at.is_empty(), first) == (true, Some(own))
            && views::is_view(graph, node)
        {
            // What is written through the result of such a layer is written of its argument.
            let args = node.inputs.iter().skip(1);
            let args = args.map(|input| Ok((&*input.name, argument(&input.arg, memory)?)));
            let mut all = vec![(&*node.inputs[0].name, Value::None)];
            all.extend(args.collect::<Result<Vec<_>>>()?);
            let view = Call {
                target: &node.target,
                args: all,
                dtypes: Vec::new(),
            };
            memory.insert_view(name, result, own, view, None);
            return Ok(());
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
        if !self.is_program && self.kept.contains(&root) {
            return Err(Error::msg(format_args!(
                "a branch or a loop writes its input `{}`: make a copy of it there first",
                root.1
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
}

impl Component for Root {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.component(self, |walk| {
            for (path, layer) in &self.layers.modules {
                walk.child(path, layer);
            }
            for leaf in self.opaque.values() {
                walk.child(&leaf.path, &leaf.module);
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
        for leaf in self.opaque.values_mut() {
            walk.child(&leaf.path, &mut leaf.module);
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
