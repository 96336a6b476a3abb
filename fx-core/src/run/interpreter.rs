//! `Interpreter`: a graph run node by node, every step overridable; on symbolic values a run traces
//! again.
//!
//! Invariant: a value is kept from its node's step to its last use, or to the end if values are
//! kept; the result stays.

use std::borrow::Cow;
use std::panic::Location;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::ir::argument::{Args, Argument, Kwargs};
use crate::ir::bound::BoundArgs;
use crate::ir::function::Function;
use crate::ir::graph::Graph;
use crate::ir::identity::{identical_but, is_same_call};
use crate::ir::node::NodeRef;
use crate::ir::op::Op;
use crate::module::attributes::{Attributes, within};
use crate::module::module::Module;
use crate::shapes::relied::ReliedOn;
use crate::text::{count, given as were_given};
use crate::trace::call_args::{CallArgs, CallForm, bind_values};
use crate::trace::context::TraceContext;
use crate::trace::dispatch::{self, is_symbolic_call};
use crate::trace::scope::may_record;
use crate::value::handle::NodeId;
use crate::value::value::Value;

/// How each step of a graph is run. Override a step, and call the method of the same name on the
/// [`Interpretation`] for the default.
///
/// [`GraphModule::interpret`](crate::GraphModule::interpret) runs a graph this way, and
/// [`GraphModule::transform`](crate::GraphModule::transform) makes a new graph: the same overrides
/// serve both.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::ir::Function;
/// use fx_core::run::{Interpretation, Interpreter};
/// use fx_core::trace::CallArgs;
///
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
/// #[wrap] fn triple(x: Float) -> Result<Float> { x * 3.0 }
///
/// struct Tripling;
/// impl Interpreter for Tripling {
///     fn call_function(&mut self, run: &mut Interpretation<'_>, function: Function, call: CallArgs) -> Result<Value> {
///         let function = if function == function!(double) { function!(triple) } else { function };
///         run.call_function(function, call)
///     }
/// }
/// let gm = symbolic_trace(traced!(|x: Float| double(x)? + 1.0))?;
/// assert_eq!(gm.interpret::<f64>(&mut Tripling, 5.0)?, 16.0);
/// let tripled = gm.transform(&mut Tripling)?;
/// assert_eq!(tripled.forward::<f64>(5.0)?, 16.0);
/// # Ok::<(), Error>(())
/// ```
#[allow(unused_variables, reason = "the names say what an override gets")]
pub trait Interpreter {
    /// Runs one node, by the method of its opcode.
    ///
    /// # Errors
    /// Returns an error if the node fails.
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        run.run_node(self, node)
    }

    /// The next input.
    ///
    /// # Errors
    /// Returns an error if there is none, and the placeholder has no default.
    fn placeholder(&mut self, run: &mut Interpretation<'_>, name: &str) -> Result<Value> {
        run.placeholder(name)
    }

    /// A parameter, buffer or constant.
    ///
    /// # Errors
    /// Returns an error if there is none at the path.
    fn get_attr(&mut self, run: &mut Interpretation<'_>, path: &str) -> Result<Value> {
        run.get_attr(path)
    }

    /// Calls a function.
    ///
    /// # Errors
    /// Returns an error if the function fails, or the arguments do not fit.
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        run.call_function(function, call)
    }

    /// Calls a method of the first argument.
    ///
    /// # Errors
    /// Returns an error if the method fails, or there is none.
    fn call_method(
        &mut self,
        run: &mut Interpretation<'_>,
        name: &str,
        call: CallArgs,
    ) -> Result<Value> {
        let _ = run;
        dispatch::call_known_method(name, call)
    }

    /// Calls a module. The default runs the steps of a branch, a loop or a scan in the same way.
    ///
    /// # Errors
    /// Returns an error if the module fails, or there is none.
    fn call_module(
        &mut self,
        run: &mut Interpretation<'_>,
        path: &str,
        call: CallArgs,
    ) -> Result<Value> {
        run.call_module(self, path, call)
    }

    /// The result.
    ///
    /// # Errors
    /// The default returns no error.
    fn output(&mut self, run: &mut Interpretation<'_>, result: Value) -> Result<Value> {
        Ok(result)
    }
}

/// Overrides nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainInterpreter;

impl Interpreter for PlainInterpreter {}

/// One run of a graph, node by node: its inputs, and the values so far.
///
/// [`GraphModule::interpretation`](crate::GraphModule::interpretation) makes one over a module's
/// graph; with [`new`](Interpretation::new) another graph runs on the same attributes.
///
/// ```
/// use fx_core::prelude::*;
/// use fx_core::run::PlainInterpreter;
/// use fx_core::value::IntoValue;
/// #[wrap] fn double(x: Float) -> Result<Float> { x * 2.0 }
/// let gm = symbolic_trace(traced!(|x: Float| double(double(x)?)))?;
/// let mut run = gm.interpretation().keep_values();
/// run.run(&mut PlainInterpreter, vec![1.5.into_value()])?;
/// let first = gm.graph().find_name("double").and_then(|node| run.value(node.id()));
/// assert_eq!(first.cloned().map(f64::from_value).transpose()?, Some(3.0));
/// # Ok::<(), Error>(())
/// ```
pub struct Interpretation<'m> {
    graph: &'m Graph,
    attributes: &'m Attributes,
    /// The trace that a transform records into.
    recording: Option<&'m TraceContext>,
    path: Cow<'m, str>,
    inputs: std::vec::IntoIter<Value>,
    /// By the node's index.
    values: Vec<Option<Value>>,
    /// The box of a value that is no longer needed, for the next result.
    spare: Value,
    given: FxHashMap<NodeId, Value>,
    keep: bool,
    node: Option<NodeRef<'m>>,
    /// Nodes, by index, for which a recording made something different.
    changed: FxHashSet<u32>,
}

/// The arguments of a function call, one for each parameter.
fn bound_call(node: NodeRef<'_>) -> Option<Vec<Argument>> {
    let Op::CallFunction(function) = node.op() else {
        return None;
    };
    let bound = BoundArgs::of(node, function.path(), function.params()).ok()?;
    Some(bound.iter().map(|(_, arg)| arg.into_owned()).collect())
}

impl<'m> Interpretation<'m> {
    /// A run of a graph with attributes.
    pub fn new(graph: &'m Graph, attributes: &'m Attributes) -> Self {
        Interpretation {
            graph,
            attributes,
            recording: None,
            path: Cow::Borrowed(""),
            inputs: Vec::new().into_iter(),
            values: Vec::new(),
            spare: Value::None,
            given: FxHashMap::default(),
            keep: false,
            node: None,
            changed: FxHashSet::default(),
        }
    }

    /// Records into a trace: placeholders and attributes become nodes of its graph.
    pub(crate) fn recording(mut self, context: &'m TraceContext) -> Self {
        self.recording = Some(context);
        self
    }

    /// Runs a graph that is at a path inside of another one.
    pub(crate) fn at(mut self, path: impl Into<Cow<'m, str>>) -> Self {
        self.path = path.into();
        self
    }

    /// Keeps every value to the end, to be read with [`value`](Interpretation::value).
    #[must_use]
    pub fn keep_values(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Sets a node's value, so that it is not run: what only it needs may be missing.
    #[must_use]
    pub fn with_value(mut self, node: NodeId, value: Value) -> Self {
        self.given.insert(node, value);
        self
    }

    /// Runs on one value for each placeholder, and returns what the output node returns.
    ///
    /// # Errors
    /// Returns an error if there are too many or too few inputs, a value was set for a node of
    /// another graph, or a node fails: the error names it and its source line.
    pub fn run(
        &mut self,
        interpreter: &mut (impl Interpreter + ?Sized),
        inputs: Vec<Value>,
    ) -> Result<Value> {
        self.check_inputs(inputs.len())?;
        self.inputs = inputs.into_iter();
        self.values = vec![None; self.graph.index_bound()];
        for (node, value) in &self.given {
            // An id of another graph is an error.
            let node = self.graph.node(*node)?.id();
            self.values[node.index as usize] = Some(value.clone());
        }
        let last_users = self.graph.last_users();
        for node in self.graph.nodes() {
            let at = node.index();
            let is_placeholder = matches!(node.op(), Op::Placeholder(_));
            if self.values[at].is_some() {
                if is_placeholder {
                    self.inputs.next();
                }
                continue;
            }
            self.node = Some(node);
            let value = self
                .step(interpreter, node)
                .map_err(|e| node.blame("executing", e))?;
            let result = matches!(node.op(), Op::Output).then(|| value.clone());
            if result.is_some() || self.keep || node.num_users() > 0 {
                self.values[at] = Some(value);
            }
            if !self.keep {
                for input in node.all_input_nodes().map(NodeRef::index) {
                    if last_users[input].is_some_and(|user| user as usize == at) {
                        self.spare = self.values[input].take().unwrap_or_default();
                        self.spare.clear();
                    }
                }
            }
            if let Some(result) = result {
                return Ok(result);
            }
        }
        Err(Error::msg("the graph has no output node"))
    }

    /// Runs only these nodes, which are in order and use only each other, and returns the values of
    /// some of them.
    pub(crate) fn run_part(&mut self, nodes: &[NodeId], results: &[NodeId]) -> Result<Vec<Value>> {
        let mut uses_left: Vec<u32> = vec![0; self.graph.index_bound()];
        for id in nodes {
            for input in self.graph.node(*id)?.all_input_nodes() {
                uses_left[input.index()] += 1;
            }
        }
        for id in results {
            uses_left[id.index as usize] += 1;
        }
        self.values = vec![None; self.graph.index_bound()];
        for id in nodes {
            let node = self.graph.node(*id)?;
            self.node = Some(node);
            let value = self.run_node(&mut PlainInterpreter, node);
            self.values[id.index as usize] = Some(value.map_err(|e| node.blame("executing", e))?);
            for input in node.all_input_nodes() {
                let index = input.index();
                uses_left[index] -= 1;
                if uses_left[index] == 0 {
                    self.values[index] = None;
                }
            }
        }
        results.iter().map(|id| self.value_of(*id)).collect()
    }

    /// [`run`](Interpretation::run) that takes the inputs out of a list, so that the caller keeps
    /// none of them alive; if they do not fit, the list stays as it was.
    ///
    /// # Errors
    /// As [`run`](Interpretation::run).
    pub fn boxed_run(
        &mut self,
        interpreter: &mut (impl Interpreter + ?Sized),
        inputs: &mut Vec<Value>,
    ) -> Result<Value> {
        self.check_inputs(inputs.len())?;
        self.run(interpreter, std::mem::take(inputs))
    }

    /// The value of a node, if its step has run and its value is kept or still needed; after a run
    /// the output's is available.
    #[inline]
    pub fn value(&self, node: NodeId) -> Option<&Value> {
        self.graph.node(node).ok()?;
        self.values.get(node.index as usize)?.as_ref()
    }

    /// The graph that runs.
    pub fn graph(&self) -> &'m Graph {
        self.graph
    }

    /// Where the graph is inside of the outermost one that runs: empty for that one itself,
    /// `cond_0.then` for a side of a branch.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of one of its nodes, behind the [`path`](Interpretation::path) of the graph:
    /// `cond_0.then.mul` in a side of a branch.
    pub fn path_of(&self, node: NodeRef<'_>) -> String {
        within(&self.path, &node.name().to_string())
    }

    /// The node that runs.
    pub fn node(&self) -> Option<NodeRef<'m>> {
        self.node
    }

    /// The modules, parameters and constants that the graph names.
    pub fn attributes(&self) -> &'m Attributes {
        self.attributes
    }

    fn step(
        &mut self,
        interpreter: &mut (impl Interpreter + ?Sized),
        node: NodeRef<'m>,
    ) -> Result<Value> {
        if !may_record() {
            let value = interpreter.run_node(self, node)?;
            if let Some(relied_on) = node.meta::<ReliedOn>() {
                relied_on.check(&value)?;
            }
            return Ok(value);
        }
        let before = self.recorded();
        let value = dispatch::retracing(node, || interpreter.run_node(self, node))?;
        if let Some(context) = self.recording {
            let made = value.as_proxy().filter(|_| self.recorded() > before);
            let is_copy = match made {
                Some(made) => self.stands_for(context, made.node(), node)?,
                None => false,
            };
            if !is_copy {
                self.changed.insert(node.id().index);
            }
        }
        Ok(value)
    }

    /// Has what a step recorded take after the node that was run; returns whether it is the same
    /// call of the same values.
    fn stands_for(&self, context: &TraceContext, made: NodeId, node: NodeRef<'_>) -> Result<bool> {
        let mut graph = context.graph_mut()?;
        // The last node that the step made stands for the node now.
        let Ok(new) = graph.node(made) else {
            return Ok(false);
        };
        if new.next().is_some() {
            return Ok(false);
        }
        let same_value = |old: NodeId, new: NodeId| {
            let value = self.value(old).and_then(Value::as_proxy);
            !self.changed.contains(&old.index) && value.is_some_and(|v| v.node() == new)
        };
        let is_copy = is_same_call(node, new, &same_value) || {
            let (old, new) = (bound_call(node), bound_call(new));
            node.op() == graph.node(made)?.op()
                && old.zip(new).is_some_and(|(old, new)| {
                    let mut args = old.iter().zip(&new);
                    old.len() == new.len() && args.all(|(a, b)| identical_but(a, b, &same_value))
                })
        };
        graph.node_mut(made)?.take_after(node, is_copy);
        Ok(is_copy)
    }

    fn recorded(&self) -> usize {
        let graph = self.recording.and_then(|context| context.graph().ok());
        graph.map_or(0, |graph| graph.len())
    }

    fn check_inputs(&self, given: usize) -> Result<()> {
        let placeholders: Vec<NodeRef<'_>> = self.graph.placeholders().collect();
        let needed = placeholders
            .iter()
            .filter(|p| p.args().is_empty() && !self.given.contains_key(&p.id()))
            .count();
        if self.recording.is_some() || (needed..=placeholders.len()).contains(&given) {
            return Ok(());
        }
        let names: Vec<String> = placeholders.iter().map(|p| p.name().to_string()).collect();
        Err(Error::msg(format_args!(
            "the graph has {} ({}), {}",
            count(names.len(), "input"),
            names.join(", "),
            were_given(given)
        )))
    }

    /// The default of [`Interpreter::run_node`]: the interpreter's method for the opcode.
    ///
    /// # Errors
    /// Returns an error if the node fails.
    pub fn run_node(
        &mut self,
        interpreter: &mut (impl Interpreter + ?Sized),
        node: NodeRef<'_>,
    ) -> Result<Value> {
        match node.op() {
            Op::Placeholder(name) => interpreter.placeholder(self, name),
            Op::GetAttr(path) => interpreter.get_attr(self, path),
            Op::CallFunction(function) => {
                let call = self.fetch_args_kwargs_from_env(node)?;
                interpreter.call_function(self, *function, call)
            }
            Op::CallMethod(name) => {
                let call = self.fetch_args_kwargs_from_env(node)?;
                interpreter.call_method(self, name, call)
            }
            Op::CallModule(path) => {
                let call = self.fetch_args_kwargs_from_env(node)?;
                interpreter.call_module(self, path, call)
            }
            Op::Output => {
                let result = node.args().first();
                let result = result.map(|result| self.map_nodes_to_values(result));
                interpreter.output(self, result.transpose()?.unwrap_or_default())
            }
        }
    }

    /// The default of [`Interpreter::placeholder`].
    ///
    /// # Errors
    /// Returns an error if there is no input left, and the placeholder has no default.
    pub fn placeholder(&mut self, name: &str) -> Result<Value> {
        if let (Some(context), Some(node)) = (self.recording, self.node) {
            return self.copied(context, node);
        }
        if let Some(input) = self.inputs.next() {
            return Ok(input);
        }
        let default = self.node.and_then(|node| node.args().first());
        default.and_then(Argument::plain_value).ok_or_else(|| {
            Error::msg(format_args!(
                "the graph needs an input for `{name}`, and none is left"
            ))
        })
    }

    /// The default of [`Interpreter::get_attr`].
    ///
    /// # Errors
    /// Returns an error if there is none at the path.
    pub fn get_attr(&mut self, path: &str) -> Result<Value> {
        let value = self.fetch_attr(path)?;
        match (self.recording, self.node) {
            (Some(context), Some(node)) if node.target() == path => {
                let Attributes { modules, tensors } = self.attributes;
                if let Some((path, (kind, _))) = tensors.get_key_value(path) {
                    context.keep_tensor(path, *kind, value);
                } else if let Some((path, module)) = modules.get_key_value(path) {
                    context.keep_module(path, &**module);
                }
                self.copied(context, node)
            }
            _ => Ok(value),
        }
    }

    /// Copies a node of this graph into the trace's, with nothing symbolic among its arguments.
    fn copied(&self, context: &TraceContext, node: NodeRef<'_>) -> Result<Value> {
        let args = Args::from_iter(node.args().iter().cloned());
        let name = node.name().to_string();
        let copy = context.insert_known(node.op().clone(), args, Kwargs::new(), Some(&name))?;
        context.graph_mut()?.node_mut(copy)?.take_after(node, true);
        Ok(Value::Proxy(context.proxy(copy)))
    }

    /// The default of [`Interpreter::call_function`]: on symbolic arguments the call is recorded.
    ///
    /// # Errors
    /// Returns an error if the function fails, or the arguments do not fit.
    pub fn call_function(&mut self, function: Function, call: CallArgs) -> Result<Value> {
        let args = bind_values(function.path(), function.params(), call)?;
        let out = std::mem::take(&mut self.spare);
        dispatch::call_values_at(function, CallForm::Function, args, out, Location::caller())
    }

    /// The default of [`Interpreter::call_method`]: on a symbolic receiver the call is recorded.
    ///
    /// # Errors
    /// Returns an error if the method fails, or there is none.
    pub fn call_method(&mut self, name: &str, call: CallArgs) -> Result<Value> {
        dispatch::call_method(name, call)
    }

    /// The default of [`Interpreter::call_module`]: in a trace its tracer decides; otherwise the
    /// graphs of a branch, a loop or a scan run step by step, too.
    ///
    /// # Errors
    /// Returns an error if the module fails, or there is none.
    pub fn call_module(
        &mut self,
        interpreter: &mut (impl Interpreter + ?Sized),
        path: &str,
        call: CallArgs,
    ) -> Result<Value> {
        let module = self.fetch_module(path)?;
        let args = bind_values(path, module.params(), call)?;
        if is_symbolic_call(&args) {
            return dispatch::call_module(module, args, Location::caller());
        }
        let lent: Vec<&Value> = args.iter().collect();
        let mut out = Value::None;
        if module.graph_names().is_empty() {
            module.run(&lent, &mut out)?;
            return Ok(out);
        }
        let called = within(self.path(), path);
        let run = &mut |name: &'static str, side: &dyn Module, args: &[&Value], out: &mut Value| {
            let Some((graph, attributes)) = side.as_graph() else {
                return side.run(args, out);
            };
            let inputs = args.iter().map(|arg| (*arg).clone()).collect();
            let mut inner = Interpretation::new(graph, attributes).at(within(&called, name));
            *out = inner.run(interpreter, inputs)?;
            Ok(())
        };
        module.run_graphs(&lent, &mut out, run)?;
        Ok(out)
    }

    /// A parameter, buffer or constant; a module that is passed to a function, as a
    /// [`ModuleArg`](crate::module::ModuleArg).
    ///
    /// # Errors
    /// Returns an error if there is none at the path.
    pub fn fetch_attr(&self, path: &str) -> Result<Value> {
        self.attributes.value(path)
    }

    /// A module.
    ///
    /// # Errors
    /// Returns an error if there is none at the path.
    pub fn fetch_module(&self, path: &str) -> Result<&'m dyn Module> {
        self.attributes.module(path)
    }

    /// A node's arguments, with values instead of nodes.
    ///
    /// # Errors
    /// Returns an error if a value is missing.
    pub fn fetch_args_kwargs_from_env(&self, node: NodeRef<'_>) -> Result<CallArgs> {
        CallArgs::of(node, &mut |input| self.value_of(input))
    }

    /// An argument, with values instead of nodes.
    ///
    /// # Errors
    /// Returns an error if a node's value is missing.
    pub fn map_nodes_to_values(&self, argument: &Argument) -> Result<Value> {
        argument.to_value(&mut |input| self.value_of(input))
    }

    /// A node's value, needed by a step.
    fn value_of(&self, node: NodeId) -> Result<Value> {
        self.value(node).cloned().ok_or_else(|| {
            let name = self.graph.node(node).map(|node| node.name().to_string());
            Error::msg(format_args!(
                "%{} has no value here: it was not run, or comes later (lint the graph)",
                name.unwrap_or_else(|_| node.to_string())
            ))
        })
    }
}
