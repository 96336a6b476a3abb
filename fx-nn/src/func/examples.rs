//! `Examples`: a graph of one example, run for all of them at once.
//!
//! Invariant: a value is marked if and only if it has the examples along its first dim.

use std::cell::RefCell;

use fx_core::control::{Cond, Scan, While};
use fx_core::ir::{Effects, Function, NodeRef, Op, ValueMeta, operator};
use fx_core::run::{Interpretation, Interpreter};
use fx_core::shapes::Spec;
use fx_core::trace::{CallArgs, FromValue, Frozen};
use fx_core::value::{Int, IntoValue, NodeId, Value};
use fx_core::{Error, GraphModule, Result};
use rustc_hash::FxHashSet;

use super::axes::{Axes, Randomness};
use super::batching::{BatchCall, Batching, aligned, repeated};
use super::derivative::args_of;
use super::expand::{Rules, is_structure};
use super::known;
use super::region::Region;
use super::source::{Replay, bound, items_of, meta_of, replayed, specs_of};
use super::tape::node_of;
use super::transform::in_trace;
use crate::op_kind::OpKind;
use crate::ops;
use crate::tensor::Tensor;

/// Runs a graph of one example for all of them.
pub(super) struct Examples {
    size: Int,
    randomness: Randomness,
    /// The values that have the examples along their first dim.
    batched: RefCell<FxHashSet<NodeId>>,
    rules: Rules,
    graph_of_many: GraphOfMany,
}

/// Makes the graph of a side of a branch or of an iteration, for many examples.
type GraphOfMany = fn(&GraphModule, OfMany) -> Result<GraphModule>;

/// How a graph is called for many examples.
pub(super) struct OfMany {
    pub in_axes: Vec<Option<i64>>,
    pub out_axes: Axes,
    pub randomness: Randomness,
    pub inputs: Vec<Spec>,
}

impl Examples {
    pub fn new(
        size: Int,
        randomness: Randomness,
        batched: FxHashSet<NodeId>,
        graph_of_many: GraphOfMany,
    ) -> Result<Self> {
        Ok(Examples {
            size,
            randomness,
            batched: RefCell::new(batched),
            rules: Rules::registered()?,
            graph_of_many,
        })
    }

    /// Whether a value, or one inside of it, has the examples along its first dim.
    pub fn has_batch(&self, value: &Value) -> bool {
        let batched = self.batched.borrow();
        let mut found = false;
        value.for_each(&mut |value| {
            found |= node_of(value).is_some_and(|node| batched.contains(&node));
        });
        found
    }

    pub fn mark(&self, value: &Value) {
        let mut batched = self.batched.borrow_mut();
        value.for_each(&mut |value| batched.extend(node_of(value)));
    }

    fn call(
        &self,
        function: Function,
        args: Vec<Value>,
        result: Option<&ValueMeta>,
    ) -> Result<Value> {
        let is_batched: Vec<bool> = args.iter().map(|arg| self.has_batch(arg)).collect();
        if self.rules.kinds.get(function) == Some(&OpKind::Draw) {
            return self.drawn(function, args, is_batched.contains(&true), result);
        }
        if !is_batched.contains(&true) {
            return function.call(args_of(args));
        }
        if function.def().effects.contains(Effects::WRITES) && !is_in_evaluation(function, &args) {
            return Err(Error::msg(
                "it writes its statistics, which examples cannot share: call `eval()`, or use a norm without running statistics",
            ));
        }
        if function == operator::getitem && is_structure(meta_of(&args[0]).ok()) {
            if let Some(item) = item_at(&args[0], &args[1]) {
                return Ok(item);
            }
            // An item of what is batched as a whole.
            let item = function.call(args_of(args))?;
            self.mark(&item);
            return Ok(item);
        }
        let has_batch = |value: &Value| self.has_batch(value);
        let call = self.batch_call(function, &args, &is_batched, result, &has_batch);
        let found = match self.rules.of(function) {
            Some(rule) => rule(&call)?,
            None => call.one_by_one()?,
        };
        let found = typed(found, result)?;
        self.mark(&found);
        Ok(found)
    }

    fn batch_call<'c>(
        &'c self,
        function: Function,
        args: &'c [Value],
        batched: &'c [bool],
        result: Option<&'c ValueMeta>,
        is_batched: &'c dyn Fn(&Value) -> bool,
    ) -> BatchCall<'c> {
        BatchCall {
            function,
            args,
            batched,
            size: &self.size,
            result,
            is_batched,
        }
    }

    /// What a random function draws.
    fn drawn(
        &self,
        function: Function,
        args: Vec<Value>,
        is_batched: bool,
        result: Option<&ValueMeta>,
    ) -> Result<Value> {
        // What is kept with a chance of 0 or 1 is not drawn.
        let draws_nothing = args.iter().zip(function.params()).any(|(arg, param)| {
            matches!(
                (&*param.name, arg),
                ("training", Value::Bool(false)) | ("p", Value::Float(0.0 | 1.0))
            )
        });
        if draws_nothing && !is_batched {
            return function.call(args_of(args));
        }
        match self.randomness {
            _ if draws_nothing => {}
            Randomness::Error => {
                return Err(Error::msg(
                    "it draws random numbers: say by `randomness` whether the examples have the same ones or different ones",
                ));
            }
            Randomness::Different => {}
            Randomness::Same if is_batched => {
                return self.same_draw(function, args);
            }
            Randomness::Same => return function.call(args_of(args)),
        }
        let found = match (is_batched, self.rules.batching.get(function)) {
            (true, Some(Batching(rule))) => {
                let batched: Vec<bool> = args.iter().map(|arg| self.has_batch(arg)).collect();
                rule(
                    &self.batch_call(function, &args, &batched, result, &|value| {
                        self.has_batch(value)
                    }),
                )?
            }
            // Its shape is that of all examples.
            (true, None) => function.call(args_of(args))?,
            (false, _) => {
                let place = function
                    .params()
                    .iter()
                    .position(|param| matches!(&*param.name, "shape" | "size"));
                let mut args = args;
                match place {
                    Some(at) => {
                        let mut sizes = vec![self.size];
                        sizes.extend(known::ints(args[at].clone())?);
                        args[at] =
                            Value::List(sizes.into_iter().map(IntoValue::into_value).collect());
                        function.call(args_of(args))?
                    }
                    None => match args.first().map(|x| Tensor::from_value(x.clone())) {
                        Some(Ok(x)) => {
                            args[0] = repeated(&x, self.size)?.into_value();
                            function.call(args_of(args))?
                        }
                        // A permutation of numbers, say: one for each example.
                        _ => self
                            .batch_call(function, &args, &vec![false; args.len()], None, &|_| false)
                            .one_by_one()?,
                    },
                }
            }
        };
        let found = typed(found, result)?;
        self.mark(&found);
        Ok(found)
    }

    /// A random function that scales elements, by one draw for an example: of ones, it is the factors. One that takes
    /// the shape alone draws for one example.
    fn same_draw(&self, function: Function, mut args: Vec<Value>) -> Result<Value> {
        let x = Tensor::from_value(args[0].clone())?;
        if function.name().ends_with("_like") {
            args[0] = ops::select(&x, 0, 0)?.into_value();
            return function.call(args_of(args));
        }
        args[0] = ops::ones_like(&ops::select(&x, 0, 0)?, None)?.into_value();
        if !function.name().starts_with("dropout") && function.name() != "stochastic_depth" {
            return Err(Error::msg(
                "what it draws depends on the example, so that the examples cannot have the same",
            ));
        }
        let factors = Tensor::from_value(function.call(args_of(args))?)?;
        let found = (x * ops::unsqueeze(&factors, 0)?)?.into_value();
        self.mark(&found);
        Ok(found)
    }
}

/// An item of a structure whose items are values of their own.
fn item_at(whole: &Value, index: &Value) -> Option<Value> {
    let (Value::Tuple(items), Value::Int(at)) = (whole, index) else {
        return None;
    };
    let at = if *at < 0 {
        *at + items.len() as i64
    } else {
        *at
    };
    items.get(usize::try_from(at).ok()?).cloned()
}

/// Whether a norm computes by its statistics, and leaves them as they are.
fn is_in_evaluation(function: Function, args: &[Value]) -> bool {
    let flag =
        function
            .params()
            .iter()
            .zip(args)
            .find_map(|(param, arg)| match (&*param.name, arg) {
                ("training", Value::Bool(training)) => Some(!training),
                ("use_input_stats", Value::Bool(own)) => Some(!own),
                _ => None,
            });
    let has_statistics = function
        .params()
        .iter()
        .zip(args)
        .any(|(param, arg)| param.name == "running_mean" && !matches!(arg, Value::None));
    flag.unwrap_or(false) || !has_statistics
}

/// A result in the element type that one example has: beside tensors, a number of an example counts for less.
fn typed(found: Value, result: Option<&ValueMeta>) -> Result<Value> {
    let Some(expected) = result
        .and_then(|meta| meta.tensor())
        .and_then(|meta| meta.dtype)
    else {
        return Ok(found);
    };
    let Ok(tensor) = Tensor::from_value(found.clone()) else {
        return Ok(found);
    };
    match known::dtype(&tensor) {
        Ok(dtype) if dtype != expected => {
            ops::to_dtype(&tensor, expected).map(IntoValue::into_value)
        }
        _ => Ok(found),
    }
}

impl Interpreter for Examples {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let Op::CallFunction(function) = node.op() else {
            return match node.op() {
                Op::GetAttr(path) => {
                    let mut instead = |_: Function, _: &[Value]| Ok(None);
                    Replay::new(&mut instead).get_attr(run, path)
                }
                Op::CallModule(path) => {
                    let call = run.fetch_args_kwargs_from_env(node)?;
                    let module = run.fetch_module(path)?;
                    match Region::of(module) {
                        Some(region) => self.region(region, path, bound(module.params(), call)),
                        None => run.run_node(self, node),
                    }
                }
                _ => run.run_node(self, node),
            };
        };
        let call: CallArgs = run.fetch_args_kwargs_from_env(node)?;
        let args = bound(function.params(), call);
        self.call(*function, args, node.meta::<ValueMeta>())
    }
}

/// A branch or a loop for all examples.
impl Examples {
    fn region(&self, region: Region<'_>, path: &str, args: Vec<Value>) -> Result<Value> {
        let batched: Vec<bool> = args.iter().map(|arg| self.has_batch(arg)).collect();
        if !batched.contains(&true) {
            return run_with(&region, &args, &region.graphs());
        }
        match region {
            Region::Branch(branch) => self.branch(branch, path, args, &batched),
            Region::Loop(turns) => self.turns(turns, path, args, batched),
            Region::Scan(scan) => self.scan(scan, args, batched),
        }
    }

    fn graph(
        &self,
        of: &GraphModule,
        batched: &[bool],
        out_axes: impl Into<Axes>,
        inputs: Vec<Spec>,
    ) -> Result<GraphModule> {
        if !batched.contains(&true) {
            return Ok(of.clone());
        }
        (self.graph_of_many)(
            of,
            OfMany {
                in_axes: batched
                    .iter()
                    .map(|is_batched| is_batched.then_some(0))
                    .collect(),
                out_axes: out_axes.into(),
                randomness: self.randomness,
                inputs,
            },
        )
    }

    /// A branch. Decided for all at once, it is one of branches that compute with all examples; decided for each, both
    /// run, and the results are selected.
    fn branch(
        &self,
        branch: &Cond,
        path: &str,
        args: Vec<Value>,
        batched: &[bool],
    ) -> Result<Value> {
        let region = Region::Branch(branch);
        let inputs = specs_of(&args[1..])?;
        let side = |side| self.graph(side, &batched[1..], 0, inputs.clone());
        if !batched[0] {
            let (then, otherwise) = (side(branch.then())?, side(branch.otherwise())?);
            let found = run_with(&region, &args, &[&then, &otherwise])?;
            self.mark(&found);
            return Ok(found);
        }
        region.is_repeatable().map_err(|_| {
            Error::msg(format_args!(
                "vmap: {path} is decided for each example, so that both sides run for all; one draws random numbers or writes statistics"
            ))
        })?;
        let (then, otherwise) = (side(branch.then())?, side(branch.otherwise())?);
        let then = items_of(replayed(&then, args[1..].to_vec())?);
        let otherwise = items_of(replayed(&otherwise, args[1..].to_vec())?);
        in_trace(|cx| {
            cx.report(Frozen::BothSides {
                branch: path.to_string(),
            });
            Ok(())
        })?;
        let condition = ops::reshape(&Tensor::from_value(args[0].clone())?, [self.size])?;
        let is_any_batched = batched[1..].contains(&true);
        let selected = then.into_iter().zip(otherwise).map(|(a, b)| {
            let tensor = |value: Value| {
                Tensor::from_value(value).map_err(|_| {
                    Error::msg(format_args!(
                        "vmap: {path} is decided for each example, and gives what is no tensor: only tensors are selected"
                    ))
                })
            };
            let (a, b) = (tensor(a)?, tensor(b)?);
            if known::dims(&a)? != known::dims(&b)? {
                return Err(Error::msg(format_args!(
                    "vmap: {path} is decided for each example, and its sides give the shapes {:?} and {:?}: the results of all examples are one tensor, of one shape",
                    known::dims(&a)?,
                    known::dims(&b)?
                )));
            }
            let rank = known::rank(&a)? - usize::from(is_any_batched);
            let condition = aligned(&condition, rank)?;
            ops::r#where(&condition, &a, &b).map(IntoValue::into_value)
        });
        let found = match selected.collect::<Result<Vec<_>>>()? {
            mut one if one.len() == 1 => one.swap_remove(0),
            all => Value::Tuple(all.into()),
        };
        self.mark(&found);
        Ok(found)
    }

    fn turns(
        &self,
        turns: &While,
        path: &str,
        mut args: Vec<Value>,
        mut batched: Vec<bool>,
    ) -> Result<Value> {
        let count = turns.carries();
        let decided = |found: &[bool]| match found.first() {
            Some(true) => Err(Error::msg(format_args!(
                "vmap: whether {path} goes on differs between the examples, and a loop over all of them has one end: let its condition depend on what is the same for all, or run it for a fixed number of iterations and select with `where`"
            ))),
            _ => Ok(()),
        };
        decided(&batched[..1])?;
        // What an iteration carries is batched if what it is made of is.
        loop {
            let found = depends(turns.body(), &batched[1..])?;
            decided(&found)?;
            if !spread(&mut batched[1..=count], &found[1..]) {
                break;
            }
        }
        self.repeat(&mut args[1..=count], &batched[1..=count])?;
        let out: Vec<Option<i64>> = std::iter::once(None)
            .chain(
                batched[1..=count]
                    .iter()
                    .map(|is_batched| is_batched.then_some(0)),
            )
            .collect();
        let body = self.graph(turns.body(), &batched[1..], out, specs_of(&args[1..])?)?;
        let found = run_with(&Region::Loop(turns), &args, &[&body])?;
        Ok(self.marked(found, &batched[1..=count]))
    }

    fn scan(&self, scan: &Scan, mut args: Vec<Value>, mut batched: Vec<bool>) -> Result<Value> {
        let count = scan.carries();
        let found = loop {
            let found = depends(scan.step(), &batched)?;
            if !spread(&mut batched[..count], &found) {
                break found;
            }
        };
        self.repeat(&mut args[..count], &batched[..count])?;
        let mut inputs = specs_of(&args[..count])?;
        let sequences = count..count + scan.sequences();
        for (sequence, is_batched) in args[sequences.clone()]
            .iter_mut()
            .zip(&batched[sequences.clone()])
        {
            let item = match meta_of(sequence)? {
                ValueMeta::Repeated(item, _) => *item,
                whole => match whole.items() {
                    Some([first, ..]) => first.clone(),
                    _ => {
                        let mut tensor = Tensor::from_value(sequence.clone())?;
                        // Items are taken along the first dim.
                        if *is_batched {
                            tensor = ops::movedim(&tensor, 0, 1)?;
                            *sequence = tensor.clone().into_value();
                        }
                        let dims = known::dims(&tensor)?.into_iter().skip(1);
                        inputs.push(Spec::tensor(dims, known::dtype(&tensor)?));
                        continue;
                    }
                },
            };
            inputs.push(Spec::of_meta(&item)?);
        }
        inputs.extend(specs_of(&args[sequences.end..])?);
        let out: Vec<Option<i64>> = found
            .iter()
            .map(|is_batched| is_batched.then_some(0))
            .collect();
        let step = self.graph(scan.step(), &batched, out, inputs)?;
        let all = run_with(&Region::Scan(scan), &args, &[&step])?;
        Ok(self.marked(all, &found))
    }

    /// Values that are the same for all examples at first, for each of them.
    fn repeat(&self, values: &mut [Value], batched: &[bool]) -> Result<()> {
        for (value, is_batched) in values.iter_mut().zip(batched) {
            if *is_batched && !self.has_batch(value) {
                let tensor = Tensor::from_value(value.clone()).map_err(|_| {
                    Error::msg(
                        "vmap: a number that a loop carries becomes one of each example: carry a tensor with one element instead",
                    )
                })?;
                *value = repeated(&tensor, self.size)?.into_value();
            }
        }
        Ok(())
    }

    /// Some results of a call, as batched.
    fn marked(&self, found: Value, batched: &[bool]) -> Value {
        match &found {
            Value::Tuple(items) => {
                for (item, _) in items
                    .iter()
                    .zip(batched)
                    .filter(|(_, is_batched)| **is_batched)
                {
                    self.mark(item);
                }
            }
            one if batched.contains(&true) => self.mark(one),
            _ => {}
        }
        found
    }
}

/// Records a branch or a loop anew, with other graphs.
fn run_with(region: &Region<'_>, args: &[Value], graphs: &[&GraphModule]) -> Result<Value> {
    let module = region.module();
    let lent: Vec<&Value> = args.iter().collect();
    let mut out = Value::None;
    module.run_graphs(&lent, &mut out, &mut |name, _, args, out| {
        let at = module.graph_names().iter().position(|of| *of == name);
        let gm = at
            .and_then(|at| graphs.get(at))
            .ok_or_else(|| Error::msg(format_args!("the module has no graph `{name}`")))?;
        *out = replayed(gm, args.iter().map(|arg| (*arg).clone()).collect())?;
        Ok(())
    })?;
    Ok(out)
}

/// Adds what holds; whether there was any that did not hold before.
fn spread(holds: &mut [bool], found: &[bool]) -> bool {
    let mut is_new = false;
    for (holds, found) in holds.iter_mut().zip(found) {
        is_new |= *found && !*holds;
        *holds |= *found;
    }
    is_new
}

/// Which results of a graph depend on some of its inputs. A size is the same for all examples.
fn depends(gm: &GraphModule, inputs: &[bool]) -> Result<Vec<bool>> {
    let graph = gm.graph();
    let mut found: FxHashSet<NodeId> = graph
        .placeholders()
        .zip(inputs)
        .filter(|(_, holds)| **holds)
        .map(|(node, _)| node.id())
        .collect();
    for node in graph.nodes() {
        let is_number = matches!(node.meta::<ValueMeta>(), Some(ValueMeta::Int(_)));
        if !is_number
            && node
                .all_input_nodes()
                .any(|input| found.contains(&input.id()))
        {
            found.insert(node.id());
        }
    }
    let results = graph.results().iter();
    Ok(results
        .map(|result| result.as_node().is_some_and(|node| found.contains(&node)))
        .collect())
}
