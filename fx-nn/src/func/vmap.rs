//! `vmap`: a function of one example as one of many.

use std::cell::RefCell;

use fx_core::ir::{Effects, Function, NodeRef, Op, ValueMeta, operator};
use fx_core::run::{Interpretation, Interpreter};
use fx_core::shapes::Spec;
use fx_core::trace::{CallArgs, FromValue, Root, TraceContext};
use fx_core::value::{Dim, Int, IntoValue, NodeId, Tree, Value};
use fx_core::{Error, Result};
use rustc_hash::FxHashSet;

use super::axes::{Axes, Randomness};
use super::batching::{BatchCall, Batching, repeated};
use super::derivative::args_of;
use super::expand::{Rules, is_structure, prepared};
use super::grad::{own, transform, unpacked, uses};
use super::known;
use super::source::{Replay, Source, bound, flat, meta_of};
use super::tape::node_of;
use super::transform::Graphs;
use crate::op_kind::OpKind;
use crate::ops;
use crate::tensor::Tensor;

/// A function of one example as one of many: each argument has one more dim, and so has the result.
pub fn vmap<'r>(of: impl Root<'r>) -> Vmap {
    Vmap::of_source(Source::of(of))
}

/// A function of many examples; made by [`vmap`].
#[derive(Clone)]
pub struct Vmap {
    source: Source,
    in_axes: Axes,
    out_axes: Axes,
    randomness: Randomness,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { Vmap, "vmap", |vmap| vmap.source.params() }

impl Vmap {
    pub(crate) fn of_source(source: Source) -> Self {
        Vmap {
            trees: source.trees(),
            source,
            in_axes: 0.into(),
            out_axes: 0.into(),
            randomness: Randomness::Error,
            graphs: Graphs::default(),
        }
    }

    /// Which dim of each argument has the examples: the first, unless this says otherwise.
    #[must_use]
    pub fn in_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.in_axes = axes.into();
        self.graphs = Graphs::default();
        self
    }

    /// Which dim of each result has the examples: the first, unless this says otherwise.
    #[must_use]
    pub fn out_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.out_axes = axes.into();
        self.graphs = Graphs::default();
        self
    }

    /// What random functions draw: they are refused, unless this says otherwise.
    #[must_use]
    pub fn randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = randomness;
        self.graphs = Graphs::default();
        self
    }

    pub(crate) fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let axes = self.in_axes.of(args, "arguments")?;
        let mut size: Option<(Dim, Int, String)> = None;
        let mut examples = Vec::with_capacity(args.len());
        let mut given = Vec::with_capacity(args.len());
        let mut batched: FxHashSet<NodeId> = FxHashSet::default();
        let mut taken = uses(args);
        for ((arg, param), axes) in args.iter().zip(self.source.params()).zip(axes) {
            let tree = Tree::of(arg)?;
            let mut of_one = Vec::new();
            let mut of_all = Vec::new();
            for (leaf, axis) in tree.flatten(arg.clone())?.into_iter().zip(axes) {
                let Some(axis) = axis.filter(|_| Tensor::from_value(leaf.clone()).is_ok()) else {
                    of_one.push(leaf.clone());
                    of_all.push(leaf);
                    continue;
                };
                // A value of its own: the same tensor may be an argument without examples too.
                let tensor = Tensor::from_value(own(cx, leaf, &mut taken)?)?;
                let dims = known::dims(&tensor)?;
                if dims.is_empty() {
                    return Err(Error::msg(format_args!(
                        "vmap: argument `{}` is one number and has no dim of examples: give it the axis None",
                        param.name
                    )));
                }
                let place = known::place(axis, dims.len()).map_err(|_| {
                    Error::msg(format_args!(
                        "vmap: argument `{}` has {} dims, and no dim {axis} of examples",
                        param.name,
                        dims.len()
                    ))
                })?;
                match &size {
                    Some((dim, _, first)) if *dim != dims[place] => {
                        return Err(Error::msg(format_args!(
                            "vmap: the examples of arguments `{first}` ({dim}) and `{}` ({}) differ in number",
                            param.name, dims[place]
                        )));
                    }
                    Some(_) => {}
                    None => {
                        size = Some((
                            dims[place].clone(),
                            known::size(&tensor, place as i64)?,
                            param.name.to_string(),
                        ))
                    }
                }
                let moved = match place {
                    0 => tensor.clone(),
                    _ => ops::movedim(&tensor, place as i64, 0)?,
                };
                let mut shape = dims;
                shape.remove(place);
                let dtype = known::dtype(&tensor)?;
                of_one.push(Spec::tensor(shape, dtype).fake_value()?);
                let moved = moved.into_value();
                batched.extend(node_of(&moved));
                of_all.push(moved);
            }
            examples.push(tree.unflatten(of_one)?);
            given.push(tree.unflatten(of_all)?);
        }
        let (_, size, _) = size.ok_or_else(|| {
            Error::msg("vmap: no argument has a dim of examples: one axis is a number")
        })?;
        let gm = prepared(
            self.source.graph(&examples)?,
            &examples,
            self.source.params(),
        )?;
        let mut run = Examples {
            size,
            randomness: self.randomness,
            batched: RefCell::new(batched),
            rules: Rules::registered()?,
        };
        let result = gm.interpretation().run(&mut run, flat(&gm, &given)?)?;
        let is_whole = node_of(&result).is_some() && run.has_batch(&result);
        let result = unpacked(result)?;
        if is_whole {
            run.mark(&result);
        }
        let tree = Tree::of(&result)?;
        let axes = self.out_axes.of_result(&result)?;
        let leaves = tree.flatten(result)?;
        let mut results = Vec::with_capacity(leaves.len());
        for ((at, leaf), axis) in leaves.into_iter().enumerate().zip(axes) {
            let Ok(tensor) = Tensor::from_value(leaf.clone()) else {
                results.push(leaf);
                continue;
            };
            let is_batched = run.has_batch(&leaf);
            results.push(match (axis, is_batched) {
                (None, false) => leaf,
                (None, true) => {
                    return Err(Error::msg(format_args!(
                        "vmap: result {at} differs between the examples, so that its axis cannot be None"
                    )));
                }
                (Some(axis), is_batched) => {
                    let all = if is_batched { tensor } else { repeated(&tensor, size)? };
                    let rank = known::rank(&all)?;
                    match known::place(axis, rank)? {
                        0 => all.into_value(),
                        place => ops::movedim(&all, 0, place as i64)?.into_value(),
                    }
                }
            });
        }
        tree.unflatten(results)
    }
}

/// Runs a graph of one example for all of them.
struct Examples {
    size: Int,
    randomness: Randomness,
    /// The values that have the examples along their first dim.
    batched: RefCell<FxHashSet<NodeId>>,
    rules: Rules,
}

impl Examples {
    /// Whether a value, or one inside of it, has the examples along its first dim.
    fn has_batch(&self, value: &Value) -> bool {
        let batched = self.batched.borrow();
        let mut found = false;
        value.for_each(&mut |value| {
            found |= node_of(value).is_some_and(|node| batched.contains(&node));
        });
        found
    }

    fn mark(&self, value: &Value) {
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
        // An item of what is batched as a whole.
        if function == operator::getitem && is_structure(meta_of(&args[0]).ok()) {
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
                    Replay {
                        instead: &mut instead,
                        attributes: Vec::new(),
                    }
                    .get_attr(run, path)
                }
                Op::CallModule(_) => {
                    let call = run.fetch_args_kwargs_from_env(node)?;
                    let is_batched = call
                        .args
                        .iter()
                        .chain(call.kwargs.iter().map(|(_, value)| value))
                        .any(|value| self.has_batch(value));
                    match is_batched {
                        true => Err(Error::msg(format_args!(
                            "vmap: {} is a branch or a loop over examples: `where` selects between two results",
                            node.target()
                        ))),
                        false => run.run_node(self, node),
                    }
                }
                _ => run.run_node(self, node),
            };
        };
        let call: CallArgs = run.fetch_args_kwargs_from_env(node)?;
        let args = bound(*function, call);
        self.call(*function, args, node.meta::<ValueMeta>())
    }
}
