//! Inference: the entry of every node by the rules of the functions, without a run.
//!
//! Invariant: a node is asked once per call of its graph, behind its inputs.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::argument::Argument;
use crate::ir::bound::BoundArgs;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::ir::value_meta::ValueMeta;
use crate::module::attributes::Attributes;
use crate::module::module::Module;
use crate::shapes::ShapeEnv;
use crate::shapes::evaluation::{keeping, lacks_rule, result_of};
use crate::shapes::spec::Leaf;
use crate::shapes::{Contract, Spec};
use crate::trace::call_args::CallArgs;
use crate::trace::root::Trace;
use crate::trace::scope;
use crate::trace::tracer::NoLeaves;
use crate::value::dim::Dim;
use crate::value::handle::NodeId;
use crate::value::value::Value;

impl GraphModule {
    /// Sets the [`ValueMeta`] entry of every node to what it gives for arguments of these specs,
    /// without running it; returns the symbols of sizes and what the shapes assume of them. The
    /// entries of a layer's call come from a trace of its body.
    ///
    /// The module is then for such arguments: a run with others is an error that names the guard
    /// ([`contract`](GraphModule::contract)), unless it is [`unguarded`](GraphModule::unguarded).
    ///
    /// A function needs a [`ShapeRule`](crate::shapes::ShapeRule). One that only takes and gives numbers needs none: what it
    /// gives is known only when the graph runs.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::ValueMeta;
    /// use fx_core::shapes::Spec;
    /// let mut gm = symbolic_trace(traced!(|n: Int| Ok(((n * 2)? + 1)?)))?;
    /// let env = gm.infer_shapes(&[Spec::int("n")])?;
    /// let add = gm.graph().find_name("add").and_then(|node| node.meta::<ValueMeta>());
    /// assert_eq!(add.map(ValueMeta::to_string).as_deref(), Some("2*n + 1"));
    /// assert!(env.guards().is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the specs do not fit the arguments, a function has no rule, or the
    /// shapes do not fit: the error names the node and its source line, and no entry changes.
    pub fn infer_shapes(&mut self, specs: &[Spec]) -> Result<ShapeEnv> {
        let mut env = ShapeEnv::default();
        specs.iter().try_for_each(|spec| spec.declare(&mut env))?;
        specs.iter().try_for_each(|spec| spec.constrain(&mut env))?;
        self.infer(specs, env)
    }

    /// [`infer_shapes`](GraphModule::infer_shapes) of a graph that stands inside of another one, such as a side of a
    /// branch: the symbols of the specs are those of `env`, with what it knows of them, and new ones have other names.
    ///
    /// ```
    /// use fx_core::prelude::*;
    /// use fx_core::ir::ValueMeta;
    /// use fx_core::shapes::Spec;
    /// let mut outer = symbolic_trace(traced!(|n: Int| n + 1))?;
    /// let env = outer.infer_shapes(&[Spec::int("n").constrained("n >= 4")])?;
    /// let mut inner = symbolic_trace(traced!(|n: Int| n.gt(3)))?;
    /// inner.infer_shapes_within(&[Spec::int("n")], &env)?;
    /// let gt = inner.graph().find_name("gt").and_then(|node| node.meta::<ValueMeta>());
    /// assert_eq!(gt.map(ValueMeta::to_string).as_deref(), Some("true"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`infer_shapes`](GraphModule::infer_shapes).
    pub fn infer_shapes_within(&mut self, specs: &[Spec], env: &ShapeEnv) -> Result<ShapeEnv> {
        let mut env = env.clone();
        let mut fakes = specs.iter().flat_map(Spec::fakes);
        fakes.try_for_each(|fake| env.are_sizes(fake))?;
        self.infer(specs, env)
    }

    fn infer(&mut self, specs: &[Spec], env: ShapeEnv) -> Result<ShapeEnv> {
        let inputs = self.inputs_of(specs)?;
        let mut inference = Inference::new();
        inference.env = env;
        inference.graph(self.graph(), self.attributes(), inputs.clone())?;
        let Inference {
            mut env, values, ..
        } = inference;
        env.without_implied()?;
        let names = self.graph().placeholders().map(|node| node.target().into());
        let contract = Contract::of(names.zip(inputs).collect(), &env);
        self.set_metas(&mut |graph| {
            let output = graph.output_node().map(|node| node.id());
            let Some(values) = output.and_then(|output| values.get(&output)) else {
                return Vec::new();
            };
            let meta = |node: NodeRef<'_>| {
                let value = values.get(node.index())?.as_ref()?.entry();
                // A later node may have said what a size is.
                Some((node.id(), env.settled_meta(value.clone()).unwrap_or(value)))
            };
            graph.nodes().filter_map(meta).collect()
        })?;
        self.set_meta(contract);
        Ok(env)
    }

    /// What each input will be.
    fn inputs_of(&self, specs: &[Spec]) -> Result<Vec<ValueMeta>> {
        let mut leaves = Vec::new();
        let args = specs.iter().map(|spec| spec.leaves(&mut leaves));
        let call = CallArgs {
            args: args.collect::<Result<_>>()?,
            kwargs: Vec::new(),
        };
        let inputs = self.process_inputs(call)?;
        let inputs = input_fakes(inputs.into_iter().map(Some).collect(), &leaves);
        Ok(inputs.into_iter().flatten().collect())
    }
}

/// What the inputs are, of values in which the leaves of specs stand.
pub(super) fn input_fakes(
    values: Vec<Option<Value>>,
    leaves: &[ValueMeta],
) -> Vec<Option<ValueMeta>> {
    fn fake(value: &Value, leaves: &[ValueMeta]) -> ValueMeta {
        let all = |items: &[Value]| items.iter().map(|item| fake(item, leaves)).collect();
        match value {
            Value::List(items) => ValueMeta::List(all(items)),
            Value::Tuple(items) => ValueMeta::Tuple(all(items)),
            Value::Dict(items) => {
                let items = items.iter();
                ValueMeta::Dict(items.map(|(k, v)| (k.clone(), fake(v, leaves))).collect())
            }
            value => match value.downcast_ref::<Leaf>() {
                Some(Leaf(at)) => leaves.get(*at).cloned().unwrap_or(ValueMeta::none()),
                None => ValueMeta::of_argument(value),
            },
        }
    }
    let values = values.iter();
    values
        .map(|value| value.as_ref().map(|value| fake(value, leaves)))
        .collect()
}

/// What nodes give, by their indices.
pub(super) trait Values {
    /// What a node gives, if it is known.
    fn of(&self, index: usize) -> Option<&ValueMeta>;
}

impl Values for [Option<ValueMeta>] {
    fn of(&self, index: usize) -> Option<&ValueMeta> {
        self.get(index)?.as_ref()
    }
}

/// Of some nodes of a graph, so that the others cost nothing.
impl Values for FxHashMap<usize, ValueMeta> {
    fn of(&self, index: usize) -> Option<&ValueMeta> {
        self.get(&index)
    }
}

pub(super) struct Inference {
    pub env: ShapeEnv,
    /// What the nodes of each graph give, by their indices; of a loop, after any number of turns. A
    /// graph is known by its output node.
    values: FxHashMap<NodeId, Vec<Option<ValueMeta>>>,
    /// How many traces of layers are around the graph: their nodes are nobody's.
    opened: usize,
}

impl Inference {
    pub fn new() -> Self {
        Inference {
            env: ShapeEnv::default(),
            values: FxHashMap::default(),
            opened: 0,
        }
    }

    /// An argument, with what its nodes give.
    pub fn argument(&self, argument: &Argument, values: &(impl Values + ?Sized)) -> ValueMeta {
        fake_of(argument, values)
    }

    /// What a graph returns for these inputs.
    pub fn graph(
        &mut self,
        graph: &Graph,
        attributes: &Attributes,
        inputs: Vec<ValueMeta>,
    ) -> Result<ValueMeta> {
        let mut values: Vec<Option<ValueMeta>> = vec![None; graph.index_bound()];
        let mut inputs = inputs.into_iter();
        for node in graph.nodes() {
            let value = self.node(node, attributes, &values[..], &mut inputs);
            let value = value.map_err(|e| match self.opened {
                0 => node.blame("inferring the shape of", e),
                // The node that calls the layer is the user's.
                _ => e,
            })?;
            values[node.index()] = Some(value.clone());
            if *node.op() == Op::Output {
                if self.opened == 0 {
                    self.values.insert(node.id(), values);
                }
                return Ok(value);
            }
        }
        Err(Error::msg("the graph has no output node"))
    }

    pub fn node(
        &mut self,
        node: NodeRef<'_>,
        attributes: &Attributes,
        values: &(impl Values + ?Sized),
        inputs: &mut impl Iterator<Item = ValueMeta>,
    ) -> Result<ValueMeta> {
        match node.op() {
            Op::Placeholder(_) => {
                let default = || node.args().first().map(|arg| fake_of(arg, values));
                let input = inputs.next().or_else(default);
                input.ok_or_else(|| Error::msg("the input has no spec"))
            }
            Op::GetAttr(path) => Ok(ValueMeta::of_argument(&attributes.value(path)?)),
            Op::CallFunction(function) => self.function(node, *function, values),
            Op::CallMethod(name) => match node.functions().one() {
                Some(method) => self.function(node, method, values),
                None => Err(Error::msg(format_args!(
                    "`{name}` is a method of no type or of several: its shape rule is not known"
                ))),
            },
            Op::CallModule(path) => {
                let module = attributes.module(path)?;
                let bound = BoundArgs::of(node, path, module.params())?;
                self.at(node);
                self.module(module, fakes_of(&bound, values))
            }
            Op::Output => {
                let result = node.args().first();
                Ok(result.map_or(ValueMeta::none(), |result| fake_of(result, values)))
            }
        }
    }

    fn function(
        &mut self,
        node: NodeRef<'_>,
        function: Function,
        values: &(impl Values + ?Sized),
    ) -> Result<ValueMeta> {
        let bound = BoundArgs::of(node, function.path(), function.params())?;
        let args = fakes_of(&bound, values);
        self.at(node);
        let given = result_of(function, &args, &mut self.env);
        match given {
            // A body that is written by functions with rules is a rule.
            Err(error) if lacks_rule(&error) && function.is_pure() => {
                let run = |args: &[&Value], out: &mut Value| function.run(args, out);
                on_fakes(&mut self.env, &run, &args).ok_or(error)
            }
            given => given,
        }
    }

    /// What a module gives: a graph by its nodes, another module by a trace of its body.
    fn module(&mut self, module: &dyn Module, args: Vec<ValueMeta>) -> Result<ValueMeta> {
        if let Some((graph, attributes)) = module.as_graph() {
            return self.graph(graph, attributes, args);
        }
        if let Some(given) = self.region(module, &args)? {
            return Ok(given);
        }
        // Nothing is drawn, and no buffer is written.
        if module.effects().is_pure() {
            let run = |args: &[&Value], out: &mut Value| module.run(args, out);
            if let Some(given) = on_fakes(&mut self.env, &run, &args) {
                return Ok(given);
            }
        }
        let mut trace = Trace::new(module).tracer(NoLeaves);
        let mut inputs = Vec::new();
        for (param, arg) in module.params().iter().zip(args) {
            match arg.known() {
                Some(value) => {
                    trace = trace.concrete(&param.name, value);
                    inputs.extend(leaves_of(arg));
                }
                None => {
                    trace = trace.present(param);
                    inputs.push(arg);
                }
            }
        }
        let opened = trace.graph_module()?;
        self.opened += 1;
        let given = self.graph(opened.graph(), opened.attributes(), inputs);
        self.opened -= 1;
        given
    }

    /// Later claims are those of a node, or of the node that calls the layer that it is in.
    pub fn at(&mut self, node: NodeRef<'_>) {
        if self.opened > 0 {
            return;
        }
        let location = node.location();
        if self.env.location.as_ref() != location {
            self.env.location = location.cloned();
            let module = node.modules_around().next();
            self.env.module = module.map_or(String::new(), |scope| scope.path.to_string());
        }
    }
}

/// What the body of a layer or a function gives for fake tensors; `None` if that is an error.
pub(super) fn on_fakes(
    env: &mut ShapeEnv,
    body: &dyn Fn(&[&Value], &mut Value) -> Result<()>,
    args: &[ValueMeta],
) -> Option<ValueMeta> {
    // What depends on no input is not computed.
    let is_fake = |arg: &ValueMeta| arg.known().is_none();
    if !args.iter().any(is_fake) {
        return None;
    }
    let before = env.clone();
    let values: Result<Vec<Value>> = args.iter().map(ValueMeta::to_value).collect();
    let values = values.ok()?;
    let lent: Vec<&Value> = values.iter().collect();
    let mut out = Value::None;
    let run = || scope::outside(|| body(&lent, &mut out));
    match keeping(env, run) {
        Ok(()) => Some(ValueMeta::of_argument(&out)),
        Err(_) => {
            *env = before;
            None
        }
    }
}

/// Structures taken apart, as a trace takes its arguments apart.
fn leaves_of(arg: ValueMeta) -> Vec<ValueMeta> {
    let mut leaves = Vec::new();
    let mut left = vec![arg];
    while let Some(one) = left.pop() {
        match one {
            ValueMeta::List(items) | ValueMeta::Tuple(items) => {
                left.extend(items.into_iter().rev())
            }
            ValueMeta::Dict(items) => left.extend(items.into_iter().rev().map(|(_, item)| item)),
            leaf => leaves.push(leaf),
        }
    }
    leaves
}

/// The arguments of a call, one for each parameter.
pub(super) fn fakes_of(bound: &BoundArgs<'_>, values: &(impl Values + ?Sized)) -> Vec<ValueMeta> {
    bound.iter().map(|(_, arg)| fake_of(&arg, values)).collect()
}

/// An argument, with what its nodes give.
fn fake_of(argument: &Argument, values: &(impl Values + ?Sized)) -> ValueMeta {
    let all = |items: &[Argument]| items.iter().map(|item| fake_of(item, values)).collect();
    match argument {
        Argument::Node(id) => values
            .of(id.index as usize)
            .cloned()
            .unwrap_or(ValueMeta::none()),
        Argument::Int(number) => ValueMeta::Int(Dim::from(*number)),
        Argument::List(items) => ValueMeta::List(all(items)),
        Argument::Tuple(items) => ValueMeta::Tuple(all(items)),
        Argument::Dict(items) => {
            let items = items.iter();
            ValueMeta::Dict(
                items
                    .map(|(k, v)| (k.clone(), fake_of(v, values)))
                    .collect(),
            )
        }
        Argument::Slice(ends) => {
            ValueMeta::Slice(Box::new(ends.each_ref().map(|end| fake_of(end, values))))
        }
        plain => plain
            .plain_value()
            .map_or(ValueMeta::none(), |value| ValueMeta::of_argument(&value)),
    }
}
