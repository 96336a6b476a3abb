//! `Counter`: a run of a graph that records what each node and each module returns, and how much
//! they multiply.
//!
//! Invariant: an operation in a layer is counted once for the node that calls the layer, and once
//! for each module around it.

use fx_core::control::Scan;
use fx_core::ir::{Argument, FunctionTable, Literal, NodeRef, Op, ValueMeta};
use fx_core::module::{Call, Module};
use fx_core::run::{Interpretation, Interpreter};
use fx_core::shapes::Spec;
use fx_core::trace::{CallArgs, FromValue, NoLeaves, PH, Trace, Tracer};
use fx_core::value::{Dim, NodeId, Value};
use fx_core::{GraphModule, Result, function};
use std::any::Any;
use std::collections::HashMap;

use indexmap::IndexMap;

use crate::multiply_adds::{CountedCall, MultiplyAdds};
use crate::tensor::Tensor;

/// The paths around a path, the root's first.
pub(crate) fn around(path: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    let dots = path.match_indices('.').map(|(at, _)| at);
    let root = (!path.is_empty()).then_some(0);
    root.into_iter().chain(dots).map(|at| &path[..at])
}

/// The records of a module.
#[derive(Default)]
pub(crate) struct Seen {
    pub output: Option<ValueMeta>,
    pub multiply_adds: Dim,
}

/// The records of a node of the outermost graph.
pub(crate) struct SeenNode {
    pub id: NodeId,
    pub output: ValueMeta,
    pub multiply_adds: Dim,
}

/// Counts while a graph runs; a layer is traced through, so that its operations are counted too.
#[derive(Default)]
pub(crate) struct Counter {
    /// The path of the module that the graph belongs to, with a dot.
    prefix: String,
    /// The records of modules, by path.
    pub seen: IndexMap<String, Seen>,
    /// The records of the outermost graph's nodes, in order.
    pub nodes: Vec<SeenNode>,
    /// The results of the running graph's nodes.
    gave: HashMap<NodeId, ValueMeta>,
    /// Multiply-adds so far.
    total: Dim,
    /// Bytes of the results of the outermost graph's calls.
    pub output_bytes: Dim,
    /// Calls that could not be counted, with the reason.
    pub uncounted: Vec<String>,
}

impl Counter {
    /// Runs a graph, and records the results of its nodes and modules.
    pub(crate) fn run(&mut self, gm: &GraphModule, inputs: Vec<Value>) -> Result<Value> {
        let result = gm.interpretation().run(self, inputs)?;
        for (path, returned) in gm.returned() {
            let output = self.meta_of(&returned);
            let path = format!("{}{path}", self.prefix);
            self.seen.entry(path).or_default().output = Some(output);
        }
        Ok(result)
    }

    /// Whether the graph that runs is that of a layer, or a side of a branch or loop.
    fn is_inside(&self, run: &Interpretation<'_>) -> bool {
        !self.prefix.is_empty() || !run.path().is_empty()
    }

    /// The metadata of an argument, with the results of its nodes.
    fn meta_of(&self, argument: &Argument) -> ValueMeta {
        let all = |items: &[Argument]| items.iter().map(|item| self.meta_of(item)).collect();
        match argument {
            Argument::Node(id) => match self.gave.get(id) {
                Some(meta) => meta.clone(),
                None => ValueMeta::none(),
            },
            Argument::List(items) | Argument::Tuple(items) => ValueMeta::List(all(items)),
            Argument::Dict(items) => {
                let items = items.iter();
                let items = items.map(|(key, item)| (key.clone(), self.meta_of(item)));
                ValueMeta::Dict(items.collect())
            }
            plain => {
                let value = plain.to_value(&mut |_| Ok(Value::None));
                ValueMeta::of(&value.unwrap_or_default())
            }
        }
    }

    /// Counts one call of a graph.
    fn count(
        &mut self,
        run: &Interpretation<'_>,
        node: NodeRef<'_>,
        meta: &ValueMeta,
    ) -> Result<()> {
        let function = Call::of(node, run.attributes()).function();
        let table = FunctionTable::<MultiplyAdds>::registered()?;
        let known = function.and_then(|f| Some((f, table.get(f)?)));
        let count = match known {
            Some((function, MultiplyAdds(count))) => {
                let args = run.fetch_args_kwargs_from_env(node)?;
                count(&CountedCall::new(function, &args, meta))?
            }
            None => Dim::default(),
        };
        let inside = self.is_inside(run);
        if !matches!(node.op(), Op::Output) && !inside {
            self.output_bytes = (&self.output_bytes + meta.memory()?)?;
        }
        let mut paths: Vec<String> = node
            .module_stack()
            .filter(|scope| !scope.path.is_empty())
            .map(|scope| format!("{}{}", self.prefix, scope.path))
            .collect();
        // A module that was traced through is recorded with its return value, not with the result
        // of a node in it.
        let whole = match node.op() {
            Op::CallModule(path) => {
                let called = format!("{}{path}", self.prefix);
                // The stack contains the called module, too.
                if paths.first() != Some(&called) {
                    paths.push(called.clone());
                }
                Some(called)
            }
            // The output's own scope is the root: its value is the root's result.
            Op::Output => {
                paths.clear();
                (!inside).then(String::new)
            }
            _ => None,
        };
        if count != 0 {
            // An operation in a layer is counted in all modules around it, too.
            let here = self.prefix.trim_end_matches('.');
            for path in around(here).chain([here]) {
                add(&mut self.seen, path, &count)?;
            }
        }
        for path in paths {
            add(&mut self.seen, &path, &count)?;
        }
        if let Some(path) = whole {
            self.seen.entry(path).or_default().output = Some(meta.clone());
        }
        self.total = (&self.total + count)?;
        Ok(())
    }
}

impl Counter {
    /// Runs a scan of a length that has a name: one step, counted as often as there are items. What it gives a list of is
    /// stacked at once, since no list has such a length.
    fn scan(
        &mut self,
        run: &mut Interpretation<'_>,
        path: &str,
        length: &Dim,
        call: CallArgs,
    ) -> Result<Value> {
        let before = self.total.clone();
        let counts = self
            .seen
            .iter()
            .map(|(path, seen)| (path.clone(), seen.multiply_adds.clone()));
        let counts: HashMap<String, Dim> = counts.collect();
        let given = run.call_module(self, path, call)?;
        let others = (length - Dim::known(1))?;
        for (path, seen) in &mut self.seen {
            let before = counts.get(path).cloned().unwrap_or_default();
            let step = (&seen.multiply_adds - before)?;
            seen.multiply_adds = (&seen.multiply_adds + (step * &others)?)?;
        }
        self.total = (&self.total + ((&self.total - before)? * &others)?)?;
        let stacked = |value: &Value| {
            let first = match value {
                Value::List(items) => items.first().cloned(),
                _ => None,
            };
            match first.and_then(|item| Tensor::from_value(item).ok()) {
                Some(item) => sized(&item, Some(length)).map(Value::object),
                None => Ok(value.clone()),
            }
        };
        match &given {
            Value::Tuple(items) => {
                let items = items.iter().map(stacked).collect::<Result<Vec<Value>>>()?;
                Ok(Value::Tuple(items.into()))
            }
            one => stacked(one),
        }
    }

    /// What `stacked` gives for the result of such a scan, which is stacked.
    fn stacked(&self, run: &Interpretation<'_>, node: NodeRef<'_>) -> Result<Option<Value>> {
        let is_stacked =
            matches!(node.op(), Op::CallFunction(f) if *f == function!(crate::control::stacked));
        if !is_stacked {
            return Ok(None);
        }
        let args = run.fetch_args_kwargs_from_env(node)?.args;
        let tensor = args.into_iter().next();
        Ok(tensor.filter(|value| value.as_object().is_some()))
    }
}

/// The length that the sequences of a scan have, if it is a name, and the call for one item.
fn open_scan(module: &dyn Module, call: &CallArgs) -> Result<Option<(Dim, CallArgs)>> {
    let any: &dyn Any = module;
    let Some(scan) = any.downcast_ref::<Scan>() else {
        return Ok(None);
    };
    let mut one = call.clone();
    let mut open = None;
    for value in one
        .args
        .iter_mut()
        .skip(scan.carries())
        .take(scan.sequences())
    {
        let Ok(tensor) = Tensor::from_value(value.clone()) else {
            return Ok(None);
        };
        let length = tensor
            .as_fake()
            .and_then(|fake| fake.dims().first().cloned());
        let Some(length) = length else {
            return Ok(None);
        };
        if length.as_number().is_some() {
            return Ok(None);
        }
        *value = Value::object(sized(&tensor, None)?);
        open = Some(length);
    }
    Ok(open.map(|length| (length, one)))
}

/// A tensor without data with a length as another first dim, or with one item along its first.
fn sized(tensor: &Tensor, length: Option<&Dim>) -> Result<Tensor> {
    let dims = tensor
        .as_fake()
        .map(|fake| fake.dims().to_vec())
        .unwrap_or_default();
    let rest = if length.is_some() { 0 } else { 1 };
    let first = length.cloned().unwrap_or(Dim::known(1));
    let dims = std::iter::once(first).chain(dims.into_iter().skip(rest));
    Tensor::fake(Spec::tensor(dims, tensor.dtype()?))
}

/// Adds multiply-adds to those of a module.
fn add(seen: &mut IndexMap<String, Seen>, path: &str, count: &Dim) -> Result<()> {
    let seen = seen.entry(path.to_string()).or_default();
    seen.multiply_adds = (&seen.multiply_adds + count)?;
    Ok(())
}

impl Interpreter for Counter {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let before = self.total.clone();
        let value = match self.stacked(run, node)? {
            Some(value) => value,
            None => run.run_node(self, node)?,
        };
        let meta = ValueMeta::of(&value);
        let inside = self.is_inside(run);
        let is_call = !matches!(node.op(), Op::Placeholder(_) | Op::GetAttr(_));
        if is_call {
            self.count(run, node, &meta)?;
        }
        self.gave.insert(node.id(), meta.clone());
        if !inside {
            self.nodes.push(SeenNode {
                id: node.id(),
                output: meta,
                multiply_adds: (&self.total - before)?,
            });
        }
        Ok(value)
    }

    fn call_module(
        &mut self,
        run: &mut Interpretation<'_>,
        path: &str,
        call: CallArgs,
    ) -> Result<Value> {
        let whole = run.fetch_module(path)?;
        if let Some((length, one)) = open_scan(whole, &call)? {
            return self.scan(run, path, &length, one);
        }
        if !whole.graph_names().is_empty() {
            return run.call_module(self, path, call);
        }
        match opened(whole, &call, NoLeaves) {
            Ok((inner, inputs)) => {
                let around = format!("{}{path}.", self.prefix);
                let outer = std::mem::replace(&mut self.prefix, around);
                let gave = std::mem::take(&mut self.gave);
                let result = self.run(&inner, inputs);
                self.gave = gave;
                self.prefix = outer;
                result
            }
            Err(error) => {
                self.uncounted
                    .push(format!("{}{path}: {error}", self.prefix));
                run.call_module(self, path, call)
            }
        }
    }
}

/// A module traced for the plain arguments of one call, and the inputs of that call.
pub(crate) fn opened(
    module: &(impl Module + ?Sized),
    call: &CallArgs,
    tracer: impl Tracer,
) -> Result<(GraphModule, Vec<Value>)> {
    let mut trace = Trace::new(module).tracer(tracer);
    for param in module.params() {
        match call.argument(module.params(), &param.name) {
            // A number that only a run knows is an input, as a tensor is.
            Some(value)
                if value.as_object().is_none()
                    && value.as_proxy().is_none()
                    && value.downcast_ref::<Tensor>().is_none() =>
            {
                trace = trace.concrete(&param.name, value.clone());
            }
            Some(_) if matches!(param.default, Some(Literal::None)) => {
                trace = trace.concrete(&param.name, PH);
            }
            _ => {}
        }
    }
    let inner = trace.graph_module()?;
    let inputs = inner.process_inputs(call.clone())?;
    Ok((inner, inputs))
}
