//! `scan`, `map` and `Scan`: a step that runs for each item of a sequence, whose length is known when
//! the graph runs.
//!
//! Invariant: a step takes the carried values and one item of each sequence, and gives as many
//! carried values and results.

use std::panic::Location;

use super::record::{self, Recording};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::function::{Effects, Function};
use crate::ir::operator;
use crate::ir::signature::ParamSpec;
use crate::module::module::{Module, RunGraph};
use crate::module::registry::ModuleType;
use crate::module::walk::Component;
use crate::trace::blame::blame;
use crate::trace::call_args::{CallArgs, IntoArgs, bind_values};
use crate::trace::convert::{FromValue, Output};
use crate::trace::dispatch::call_module;
use crate::trace::open_side::Region;
use crate::trace::scope;
use crate::trace::side::Side;
use crate::value::handle::{NodeId, Proxy};
use crate::value::tree::Tree;
use crate::value::value::Value;

/// Runs a step on a state and each item of `xs` along its first dim (`jax.lax.scan`): returns the
/// state after the last one, and what the steps gave, put together by `stack`.
///
/// `xs`, and what a step gives besides the state, are tensors or structures of them. `stack` makes
/// one tensor of a list of them along a new first dim; a tensor library has a `scan` of its own that
/// knows it (`fx_nn::control::scan`). If the items are traced, one step is recorded as the body of
/// a [`Scan`], and the graph runs it for as many items as there are; otherwise the steps run one by
/// one.
///
/// # Errors
/// Returns an error if a step fails or changes the structure of the state, or there are no items.
#[track_caller]
pub fn scan<S: Output, X: Output, Y: Output>(
    stack: Function,
    init: S,
    xs: X,
    mut step: impl FnMut(S, X) -> Result<(S, Y)>,
) -> Result<(S, Y)> {
    let caller = Location::caller();
    let mut step = |state: Value, item: Value| {
        let (state, given) = step(S::from_value(state)?, X::from_value(item)?)?;
        Ok((state.into_value(), given.into_value()))
    };
    let (state, given) = scan_values(stack, init.into_value(), xs.into_value(), &mut step, caller)?;
    Ok((S::from_value(state)?, Y::from_value(given)?))
}

/// What a step makes of a state and an item.
type Step<'a> = &'a mut dyn FnMut(Value, Value) -> Result<(Value, Value)>;

fn scan_values(
    stack: Function,
    init: Value,
    xs: Value,
    step: Step<'_>,
    caller: &'static Location<'static>,
) -> Result<(Value, Value)> {
    let (tree, items) = record::flat(xs)?;
    let (state, given, lists) = match items.iter().find_map(Value::as_proxy) {
        Some(proxy) => recorded(proxy, init, &tree, items, step, caller)?,
        None => one_by_one(init, &tree, &items, step)?,
    };
    let stacked = lists.into_iter().map(|list| {
        let args = vec![list];
        let kwargs = Vec::new();
        stack.call(CallArgs { args, kwargs })
    });
    let stacked = stacked.collect::<Result<Vec<Value>>>()?;
    Ok((state, given.unflatten(stacked)?))
}

/// The state after the last step, the structure of what steps give, and its leaves: a list each.
type Scanned = (Value, Tree, Vec<Value>);

fn one_by_one(state: Value, tree: &Tree, items: &[Value], step: Step<'_>) -> Result<Scanned> {
    let count = common_length(items)?;
    let (mut state, mut given) = (state, None);
    let mut lists: Vec<Vec<Value>> = Vec::new();
    for at in 0..count {
        let item = items.iter().map(|of| item_of(of, at));
        let item = tree.unflatten(item.collect::<Result<_>>()?)?;
        let (next, result) = step(state, item)?;
        state = next;
        let (shape, leaves) = record::flat(result)?;
        match &given {
            None => given = Some(shape),
            Some(first) if *first == shape => {}
            Some(first) => {
                return Err(Error::msg(format_args!(
                    "a step gives `{shape}`, and the first one gave `{first}`: every step of a scan gives one structure"
                )));
            }
        }
        lists.resize_with(leaves.len(), Vec::new);
        for (list, leaf) in lists.iter_mut().zip(leaves) {
            list.push(leaf);
        }
    }
    let lists = lists.into_iter().map(|list| Value::List(list.into()));
    let Some(given) = given else {
        return Err(of_nothing());
    };
    Ok((state, given, lists.collect()))
}

/// The error of a scan without items.
fn of_nothing() -> Error {
    Error::msg("a scan over no items gives nothing: what its steps give has no known shape")
}

/// How many items there are, which all sequences have.
fn common_length(items: &[Value]) -> Result<usize> {
    let mut count = None;
    for of in items {
        let length = length_of(of)?;
        if count.is_some_and(|count| count != length) {
            return Err(Error::msg(format_args!(
                "a scan takes items of sequences of {} and of {length}: all have one length",
                count.unwrap_or_default()
            )));
        }
        count = Some(length);
    }
    count.ok_or_else(|| Error::msg("a scan goes over one sequence or more"))
}

fn length_of(of: &Value) -> Result<usize> {
    match of {
        Value::List(items) | Value::Tuple(items) => Ok(items.len()),
        Value::Object(_) => {
            let shape: Vec<i64> = operator::getattr.call_as((of.clone(), "shape"))?;
            let first = shape
                .first()
                .copied()
                .and_then(|size| usize::try_from(size).ok());
            first.ok_or_else(|| {
                Error::expected("a tensor with a first dim to scan over", "one without")
            })
        }
        other => Err(Error::expected("a tensor to scan over", other.describe())),
    }
}

fn item_of(of: &Value, at: usize) -> Result<Value> {
    match of {
        Value::List(items) | Value::Tuple(items) => items
            .get(at)
            .cloned()
            .ok_or_else(|| Error::expected(format_args!("an item at {at}"), items.len())),
        other => operator::getitem.call_as((other.clone(), at)),
    }
}

fn recorded(
    proxy: Proxy,
    init: Value,
    tree: &Tree,
    items: Vec<Value>,
    step: Step<'_>,
    caller: &'static Location<'static>,
) -> Result<Scanned> {
    let active = scope::of_proxy(proxy)?;
    let context = &active.context;
    let (shape, init) = record::flat(init)?;
    let mut own: Vec<NodeId> = Vec::new();
    let mut state = init.clone();
    let mut carried: Vec<usize> = Vec::new();
    for (at, leaf) in state
        .iter_mut()
        .enumerate()
        .filter(|(_, leaf)| record::is_carried(leaf))
    {
        let node = record::input(&active, "carry")?;
        *leaf = Value::Proxy(context.proxy(node));
        own.push(node);
        carried.push(at);
    }
    let inputs = items.iter().map(|_| record::input(&active, "item"));
    let inputs = inputs.collect::<Result<Vec<NodeId>>>()?;
    let item = inputs.iter().map(|node| Value::Proxy(context.proxy(*node)));
    let item: Vec<Value> = item.collect();
    own.extend(inputs);
    let recording = Recording::begin(&active, Region::Loop, caller)?;
    let (after, given) = step(shape.unflatten(state)?, tree.unflatten(item)?)?;
    let nodes = recording.nodes()?;
    recording.end()?;
    context.set_location(caller);
    let (after_shape, mut after) = record::flat(after)?;
    if after_shape != shape {
        let text = format!(
            "the state is `{shape}` before a step of the scan and `{after_shape}` after it: every step gives one structure"
        );
        return Err(blame(&active, "scan", Error::msg(text)));
    }
    let (given, leaves) = record::flat(given)?;
    let next = carried.iter().map(|at| std::mem::take(&mut after[*at]));
    let results: Vec<Value> = next.chain(leaves).collect();
    let results = record::arguments(&active, &results)?;
    let count = results.len();
    let side = Side { nodes, results };
    let captured = context.operands(&[&side], &own)?;
    let inputs: Vec<NodeId> = own.iter().chain(&captured).copied().collect();
    let module = Scan {
        step: record::part_module(&active, &side, &inputs, true, "step")?,
        carries: carried.len(),
        sequences: items.len(),
    };
    context.cut(&[&side], &own, "a scan", caller)?;
    let begin: Vec<Value> = carried
        .iter()
        .map(|at| init[*at].clone())
        .chain(items)
        .collect();
    let args = record::arguments(&active, &begin)?;
    let args = args.into_iter().chain(record::nodes(&captured));
    let mut results = record::call(&active, "scan", &module, None, args, count)?.into_iter();
    let mut state = init;
    for (at, result) in carried.into_iter().zip(results.by_ref()) {
        state[at] = result;
    }
    Ok((shape.unflatten(state)?, given, results.collect()))
}

/// A scan of a graph: runs `step` for each item of its sequences. [`scan`] makes it.
///
/// Its inputs are the carried values, the sequences, and what the step reads from outside. It gives
/// the carried values after the last step, and a list of what the steps gave, per result (ONNX's
/// `Scan`, whose results are stacked).
#[derive(Debug, fx_macros::Module)]
pub struct Scan {
    step: GraphModule,
    carries: usize,
    sequences: usize,
}

impl Scan {
    /// One step.
    pub fn step(&self) -> &GraphModule {
        &self.step
    }

    /// How many values a step carries to the next.
    pub fn carries(&self) -> usize {
        self.carries
    }

    /// How many sequences it takes items of.
    pub fn sequences(&self) -> usize {
        self.sequences
    }

    /// Runs it as a module; in a trace the call is recorded. Generated source calls a scan like
    /// this.
    ///
    /// # Errors
    /// Returns an error if the arguments do not fit, the sequences differ in length or have no
    /// items, or a step fails.
    #[track_caller]
    pub fn forward<R: FromValue>(&self, args: impl IntoArgs) -> Result<R> {
        let args = bind_values("a scan", self.params(), args.into_args())?;
        R::from_value(call_module(self, args, Location::caller())?)
    }

    /// Records it anew, in a trace that opens it.
    fn anew(
        &self,
        proxy: Proxy,
        init: &[&Value],
        sequences: Vec<Value>,
        captured: &[&Value],
        run: RunGraph<'_>,
    ) -> Result<Value> {
        let leaves = |count: usize| Tree::of(&Value::List(vec![Value::Int(0); count].into()));
        let items = leaves(sequences.len())?;
        let mut step = |state: Value, item: Value| {
            let (Value::List(state), Value::List(item)) = (&state, &item) else {
                return Err(Error::expected("the arguments of a step", state.describe()));
            };
            let inputs = state.iter().chain(item.iter());
            let inputs: Vec<&Value> = inputs.chain(captured.iter().copied()).collect();
            let mut given = Value::None;
            run("step", &self.step, &inputs, &mut given)?;
            let Value::Tuple(results) = &given else {
                return Err(Error::expected("a tuple from the step", given.describe()));
            };
            let (next, results) = results.split_at_checked(state.len()).ok_or_else(|| {
                Error::expected("the carried values from the step", results.len())
            })?;
            Ok((Value::List(next.into()), Value::List(results.into())))
        };
        let init = init.iter().map(|value| (*value).clone());
        let init = Value::List(init.collect());
        let caller = Location::caller();
        let (state, _, lists) = recorded(proxy, init, &items, sequences, &mut step, caller)?;
        let state = leaves(self.carries)?.flatten(state)?;
        Ok(record::given(state.into_iter().chain(lists).collect()))
    }
}

impl Module for Scan {
    fn params(&self) -> &[ParamSpec] {
        self.step.params()
    }

    fn run(&self, args: &[&Value], out: &mut Value) -> Result<()> {
        self.run_graphs(args, out, &mut record::run_side)
    }

    fn run_graphs(&self, args: &[&Value], out: &mut Value, run: RunGraph<'_>) -> Result<()> {
        let missing = || Error::expected("the arguments of a scan", args.len());
        let (init, rest) = args.split_at_checked(self.carries).ok_or_else(missing)?;
        let (sequences, captured) = rest.split_at_checked(self.sequences).ok_or_else(missing)?;
        let sequences: Vec<Value> = sequences.iter().map(|of| (*of).clone()).collect();
        // Sequences may be constants of the graph that a trace opens.
        let mut traced = args.iter().filter_map(|value| value.as_proxy());
        if let Some(proxy) = traced.find(|proxy| !proxy.is_fake()) {
            *out = self.anew(proxy, init, sequences, captured, run)?;
            return Ok(());
        }
        let count = common_length(&sequences)?;
        let mut state: Vec<Value> = init.iter().map(|value| (*value).clone()).collect();
        let mut lists: Vec<Vec<Value>> = Vec::new();
        let mut given = Value::None;
        for at in 0..count {
            let items = sequences.iter().map(|of| item_of(of, at));
            let items = items.collect::<Result<Vec<Value>>>()?;
            let inputs: Vec<&Value> = state
                .iter()
                .chain(&items)
                .chain(captured.iter().copied())
                .collect();
            run("step", &self.step, &inputs, &mut given)?;
            let Value::Tuple(results) = &mut given else {
                return Err(Error::expected("a tuple from the step", given.describe()));
            };
            let Some((next, results)) = results.split_at_mut_checked(state.len()) else {
                return Err(Error::expected(
                    "the carried values from the step",
                    results.len(),
                ));
            };
            state.swap_with_slice(next);
            lists.resize_with(results.len(), || Vec::with_capacity(count));
            for (list, result) in lists.iter_mut().zip(results) {
                list.push(std::mem::take(result));
            }
        }
        if count == 0 {
            return Err(of_nothing());
        }
        let lists = lists.into_iter().map(|list| Value::List(list.into()));
        let all: Vec<Value> = state.into_iter().chain(lists).collect();
        *out = record::given(all);
        Ok(())
    }

    fn as_module(&self) -> &dyn Module {
        self
    }

    fn duplicate_box(&self) -> Box<dyn Module> {
        Box::new(self.duplicate())
    }

    fn is_leaf(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        self.step.effects()
    }

    fn graph_names(&self) -> &'static [&'static str] {
        &["step"]
    }

    fn open_edit(&mut self) -> bool {
        self.step.open_edit()
    }

    fn close_edit(&mut self, keep: bool) {
        self.step.close_edit(keep);
    }

    fn carried(&self) -> usize {
        self.carries
    }
}

crate::__private::submit! { ModuleType, ModuleType::named::<Scan>(|| "fx_core::control::Scan") }
