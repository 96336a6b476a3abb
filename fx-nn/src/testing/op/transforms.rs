//! The routes of `func`: the gradient as a graph beside that of the tape, forward mode beside reverse mode, and many
//! examples at once beside a call for each.

use fx_core::ir::{FunctionTable, NodeRef};
use fx_core::shapes::Spec;
use fx_core::trace::CallArgs;
use fx_core::value::{DType, Value};
use fx_core::{Error, GraphModule, Result, function};

use super::super::close;
use super::{Given, Missing, Sample};
use crate::NoGradient;
use crate::func::{Randomness, Transform, jvp, vjp, vmap};
use crate::ops;
use crate::tensor::Tensor;

/// How many examples there are at once.
const EXAMPLES: i64 = 3;

fn is_double(x: &Tensor) -> bool {
    x.dtype().is_ok_and(|dtype| dtype == DType::F64)
}

/// Whether a tensor is of floats of fewer digits.
fn is_short(x: &Tensor) -> bool {
    x.dtype().is_ok_and(|dtype| dtype.is_floating_point()) && !is_double(x)
}

/// Whether a tensor is of floats that are compared.
fn is_float(x: &Tensor) -> bool {
    matches!(x.dtype(), Ok(DType::F32 | DType::F64))
}

fn call(args: Vec<Value>) -> CallArgs {
    CallArgs {
        args,
        kwargs: Vec::new(),
    }
}

fn leaves(value: &Value) -> Vec<Tensor> {
    close::leaves(value).0
}

/// The tensors of doubles in values, each changed.
fn changed(value: &Value, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<Value> {
    changed_of(is_double, value, change)
}

fn changed_of(
    is: fn(&Tensor) -> bool,
    value: &Value,
    change: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Value> {
    close::map_tensors(value, &mut |x| match is(x) {
        true => change(x),
        false => Ok(x.clone()),
    })
}

/// Numbers in the shape of a tensor.
fn pattern(x: &Tensor, start: usize) -> Result<Tensor> {
    let count: usize = x.dims()?.iter().product();
    let numbers = (0..count).map(|at| ((at * 29 + start) % 13) as f64 / 6.5 - 0.9);
    Tensor::from_vec(numbers.collect::<Vec<f64>>(), x.dims()?)
}

/// A graph with floats among its arguments, and what it gives.
struct Smooth<'s> {
    gm: &'s GraphModule,
    args: Vec<Value>,
    /// The positions of the arguments with floats.
    of: Vec<usize>,
    result: Value,
}

impl<'s> Smooth<'s> {
    /// Of a sample with derivatives.
    fn of(sample: &'s Sample<'_>) -> Result<std::result::Result<Self, Missing>> {
        // What differences are not compared with.
        if let Some(reason) = sample.missing("gradient") {
            return Ok(Err(reason));
        }
        let flat = FunctionTable::<NoGradient>::registered()?;
        let functions = sample
            .module()?
            .graph()
            .nodes()
            .filter_map(NodeRef::function);
        if functions
            .into_iter()
            .any(|function| flat.get(function).is_some())
        {
            return Ok(Err(Missing::NotDifferentiable));
        }
        let smooth = match Smooth::any(sample, is_double)? {
            Ok(smooth) => smooth,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut all = smooth.args.iter().chain([&smooth.result]).flat_map(leaves);
        let has_short = all.any(|x| is_short(&x));
        drop(all);
        if has_short {
            return Ok(Err(Missing::ElementType));
        }
        Ok(match leaves(&smooth.result).iter().any(is_double) {
            true => Ok(smooth),
            false => Err(Missing::NotDifferentiable),
        })
    }

    /// Of a sample with tensors of some types.
    fn any(
        sample: &'s Sample<'_>,
        is: fn(&Tensor) -> bool,
    ) -> Result<std::result::Result<Self, Missing>> {
        if sample.is_random() {
            return Ok(Err(Missing::Random));
        }
        let (gm, args) = (sample.module()?, sample.args().args);
        let has = |at: &usize| leaves(&args[*at]).iter().any(is);
        let of: Vec<usize> = (0..args.len()).filter(has).collect();
        if of.is_empty() {
            return Ok(Err(Missing::ElementType));
        }
        let result: Value = gm.forward(call(args.clone()))?;
        Ok(Ok(Smooth {
            gm,
            args,
            of,
            result,
        }))
    }

    /// The gradients of the arguments for one of the result.
    fn pulled(&self, cotangent: &Value) -> Result<Value> {
        let mut given = self.args.clone();
        given.push(cotangent.clone());
        let (_, grads): (Value, Value) = vjp(self.gm).wrt(self.of.clone()).call(call(given))?;
        Ok(grads)
    }
}

/// The elements of doubles.
fn numbers(value: &Value) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for x in leaves(value).iter().filter(|x| is_double(x)) {
        all.extend(x.to_vec()?);
    }
    Ok(all)
}

/// Whether numbers are the same, beside the largest.
fn are_near(a: &[f64], b: &[f64], share: f64) -> bool {
    let finite = a.iter().chain(b).filter(|x| x.is_finite());
    let largest = finite.fold(1.0f64, |most, x| most.max(x.abs()));
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= share * largest)
}

/// What a transform that refuses has to do with a sample.
fn refused(error: Error) -> Result<Given> {
    match error.to_string() {
        text if text.contains("has no derivative") || text.contains("have no derivative") => {
            Ok(Given::Missing(Missing::NotYet))
        }
        // Factors that PyTorch does not differentiate either.
        text if text.contains("is of the mode") || text.contains("that have a value") => {
            Ok(Given::Missing(Missing::Convention))
        }
        _ => Err(error),
    }
}

/// `func::vjp` beside the tape.
pub(super) fn reverse(sample: &Sample<'_>) -> Result<Given> {
    let smooth = match Smooth::of(sample)? {
        Ok(smooth) => smooth,
        Err(reason) => return Ok(Given::Missing(reason)),
    };
    let cotangent = changed(&smooth.result, &mut |y| pattern(y, 5))?;
    // By the tape.
    let all = Value::List(smooth.args.clone().into());
    let mut learning = Vec::new();
    let given = changed(&all, &mut |x| {
        let leaf = Tensor::from_vec(x.to_vec()?, x.dims()?)?.into_parameter()?;
        learning.push(leaf.clone());
        Ok(leaf)
    })?;
    let Value::List(given) = &given else {
        return Err(Error::msg("the arguments are a list"));
    };
    let result: Value = smooth.gm.forward(call(given.to_vec()))?;
    let mut total: Option<Tensor> = None;
    let weights = leaves(&cotangent);
    for (y, weight) in leaves(&result)
        .iter()
        .zip(&weights)
        .filter(|(y, _)| is_double(y))
    {
        if !y.requires_grad()? {
            continue;
        }
        let sum = (y * weight)?.sum(..)?;
        total = Some(match total {
            Some(total) => (total + sum)?,
            None => sum,
        });
    }
    let store = match total {
        Some(total) => match total.backward() {
            Ok(store) => store,
            Err(_) => return Ok(Given::Missing(Missing::NotDifferentiable)),
        },
        None => return Ok(Given::Missing(Missing::NotDifferentiable)),
    };
    let mut expected = Vec::new();
    for leaf in &learning {
        expected.extend(match store.get(leaf)? {
            Some(grad) => grad.to_vec()?,
            None => vec![0.0; leaf.dims()?.iter().product()],
        });
    }
    let found = match smooth.pulled(&cotangent) {
        Ok(found) => numbers(&found)?,
        Err(error) => return refused(error),
    };
    // A weight of 0 beside an infinite slope is NaN or 0, by the order of the products.
    let both = expected
        .iter()
        .zip(&found)
        .filter(|(a, b)| a.is_finite() && b.is_finite());
    let (a, b): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (*a, *b)).unzip();
    if expected.len() != found.len() || !are_near(&a, &b, 1e-9) {
        return Ok(Given::Differs(format!(
            "{found:?}, by the tape {expected:?}"
        )));
    }
    Ok(Given::Agrees)
}

/// `func::jvp` beside `func::vjp`: `<u, Jv>` is `<uJ, v>`.
pub(super) fn forward(sample: &Sample<'_>) -> Result<Given> {
    let smooth = match Smooth::of(sample)? {
        Ok(smooth) => smooth,
        Err(reason) => return Ok(Given::Missing(reason)),
    };
    let tangents = smooth
        .of
        .iter()
        .map(|at| changed(&smooth.args[*at], &mut |x| pattern(x, 3)));
    let tangents = Value::Tuple(tangents.collect::<Result<_>>()?);
    let mut given = smooth.args.clone();
    given.push(tangents.clone());
    let pair: Result<(Value, Value)> = jvp(smooth.gm).wrt(smooth.of.clone()).call(call(given));
    let (_, change) = match pair {
        Ok(pair) => pair,
        Err(error) => return refused(error),
    };
    let cotangent = changed(&smooth.result, &mut |y| pattern(y, 5))?;
    let grads = smooth.pulled(&cotangent)?;
    let dot = |a: &Value, b: &Value| -> Result<(f64, f64)> {
        let products = numbers(a)?.into_iter().zip(numbers(b)?).map(|(a, b)| a * b);
        Ok(products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs())))
    };
    let (left, size) = dot(&cotangent, &change)?;
    let (right, other) = dot(&grads, &tangents)?;
    // Infinite slopes have no sum.
    let is_near = (left - right).abs() <= 1e-9 * size.max(other).max(1.0);
    match is_near || !left.is_finite() || !right.is_finite() {
        true => Ok(Given::Agrees),
        false => Ok(Given::Differs(format!(
            "<u, Jv> is {left:e}, and <uJ, v> {right:e}"
        ))),
    }
}

/// How far arguments are moved for second derivatives, and how near their differences have to be.
const STEP: f64 = 1e-5;
const NEAR: f64 = 2e-6;

/// The gradient of a gradient beside central differences of the gradient, where these agree for two steps.
pub(super) fn second(sample: &Sample<'_>) -> Result<Given> {
    let smooth = match Smooth::of(sample)? {
        Ok(smooth) => smooth,
        Err(reason) => return Ok(Given::Missing(reason)),
    };
    let mut given = smooth.args.clone();
    given.push(changed(&smooth.result, &mut |y| pattern(y, 5))?);
    let specs: Vec<Spec> = given.iter().map(|arg| Spec::of(arg.clone())).collect();
    let of = vjp(smooth.gm).wrt(smooth.of.clone());
    let first = match of.graph_module(&specs) {
        Ok(first) => first,
        Err(error) => return refused(error),
    };
    let run = |args: Vec<Value>| -> Result<Value> {
        let (_, grads): (Value, Value) = first.forward(call(args))?;
        Ok(grads)
    };
    let here = run(given.clone())?;
    let weights = changed(&here, &mut |x| pattern(x, 7))?;
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let of_weights = numbers(&weights)?;
    let size: f64 = numbers(&here)?.iter().map(|x| x.abs()).sum();
    // The weighted gradients where all arguments are moved.
    let at = |step: f64| -> Result<f64> {
        let mut moved = given.clone();
        for place in &smooth.of {
            moved[*place] = changed(&moved[*place], &mut |x| x + (pattern(x, 3)? * step)?)?;
        }
        Ok(dot(&numbers(&run(moved)?)?, &of_weights))
    };
    // What refuses numbers beside these has no differences.
    let steps = [STEP, -STEP, STEP / 2.0, -STEP / 2.0].map(at);
    let [Ok(above), Ok(below), Ok(near_above), Ok(near_below)] = steps else {
        return Ok(Given::Missing(Missing::NotDifferentiable));
    };
    let base = dot(&numbers(&here)?, &of_weights);
    let (right, left) = ((above - base) / STEP, (base - below) / STEP);
    let (wide, near) = ((right + left) / 2.0, (near_above - near_below) / STEP);
    let scale = 1.0 + size + near.abs();
    let is_smooth =
        (wide - near).abs() <= NEAR / 4.0 * scale && (right - left).abs() <= 1e-3 * scale;
    if !is_smooth || !scale.is_finite() {
        return Ok(Given::Missing(Missing::NotDifferentiable));
    }
    let zeros = changed(&smooth.result, &mut |y| ops::zeros_like(y, None))?;
    let mut args = given.clone();
    args.push(Value::Tuple(vec![zeros, weights].into()));
    let pair: Result<(Value, Value)> = vjp(&first).wrt(smooth.of.clone()).call(call(args));
    let (_, found) = match pair {
        Ok(pair) => pair,
        Err(error) => return refused(error),
    };
    let directions = smooth
        .of
        .iter()
        .map(|at| changed(&smooth.args[*at], &mut |x| pattern(x, 3)));
    let directions = Value::Tuple(directions.collect::<Result<_>>()?);
    let found = dot(&numbers(&found)?, &numbers(&directions)?);
    match (found - near).abs() <= NEAR * scale {
        true => Ok(Given::Agrees),
        false => Ok(Given::Differs(format!(
            "the second derivative is {found:e}, and by differences {near:e}"
        ))),
    }
}

/// The elements of an example in another order, or larger where their order counts.
fn example(x: &Tensor, at: i64, is_sorted: bool) -> Result<Tensor> {
    let count: usize = x.dims()?.iter().product();
    match (at, count) {
        (0, _) | (_, 0 | 1) => Ok(x.clone()),
        (at, _) if is_sorted => x * (at as f64 + 1.0),
        (at, _) => {
            let dims = x.dims()?.iter().map(|n| *n as i64).collect::<Vec<_>>();
            x.reshape([-1])?.roll(at, 0)?.reshape(dims)
        }
    }
}

/// `func::vmap` beside a call for each example: of all arguments, then of each alone.
pub(super) fn batched(sample: &Sample<'_>) -> Result<Given> {
    let smooth = match Smooth::any(sample, is_float)? {
        Ok(smooth) => smooth,
        Err(reason) => return Ok(Given::Missing(reason)),
    };
    let mut choices = vec![smooth.of.clone()];
    if smooth.of.len() > 1 {
        choices.extend(smooth.of.iter().map(|at| vec![*at]));
    }
    let mut given = Given::Missing(Missing::DataDependentShape);
    for chosen in choices {
        match batch(&smooth, &chosen) {
            Ok(None) => {}
            Ok(Some(Given::Agrees)) => given = Given::Agrees,
            Ok(Some(other)) => return Ok(other),
            Err(error) => {
                let text = error.to_string();
                return match text {
                    text if text.contains("depends on the example") => {
                        Ok(Given::Missing(Missing::DataDependentShape))
                    }
                    text if text.contains("which examples cannot share") => {
                        Ok(Given::Missing(Missing::Effect))
                    }
                    text if text.contains("which examples do not share") => {
                        Ok(Given::Missing(Missing::HostValue))
                    }
                    _ => Err(error),
                };
            }
        }
    }
    Ok(given)
}

/// The arguments at some positions for several examples; nothing if the calls for each are refused or give other shapes.
fn batch(smooth: &Smooth<'_>, chosen: &[usize]) -> Result<Option<Given>> {
    // What is looked up in order.
    let mut functions = smooth.gm.graph().nodes().filter_map(NodeRef::function);
    let is_sorted = functions.any(|function| {
        function == function!(ops::bucketize) || function == function!(ops::searchsorted)
    });
    let mut each = Vec::new();
    for at in 0..EXAMPLES {
        let mut args = smooth.args.clone();
        for place in chosen {
            args[*place] = changed_of(is_float, &args[*place], &mut |x| example(x, at, is_sorted))?;
        }
        let Ok(result) = smooth.gm.forward::<Value>(call(args.clone())) else {
            return Ok(None);
        };
        each.push((args, leaves(&result)));
    }
    let first = &each[0].1;
    let is_alike = |found: &Vec<Tensor>| {
        let dims = |x: &Tensor| x.dims().map(<[usize]>::to_vec).ok();
        found.len() == first.len() && found.iter().zip(first).all(|(a, b)| dims(a) == dims(b))
    };
    if !each.iter().all(|(_, found)| is_alike(found)) {
        return Ok(None);
    }
    let mut args = smooth.args.clone();
    let mut axes = vec![None; args.len()];
    for place in chosen {
        // Each dim of some sample.
        let tensors = leaves(&args[*place]);
        let count: usize = tensors.iter().flat_map(|x| x.dims()).flatten().sum();
        let ranks = tensors.iter().flat_map(|x| x.dims()).map(<[usize]>::len);
        let axis = (count + place) % (ranks.min().unwrap_or(0) + 1);
        axes[*place] = Some(axis as i64);
        let mut tensor = 0;
        args[*place] = close::map_tensors(&args[*place], &mut |_| {
            let parts: Vec<Tensor> = each
                .iter()
                .map(|(args, _)| leaves(&args[*place])[tensor].clone())
                .collect();
            tensor += 1;
            ops::stack(&parts, axis as i64)
        })?;
    }
    let transform = vmap(smooth.gm)
        .in_axes(axes)
        .randomness(Randomness::Different);
    let found: Value = transform.call(call(args))?;
    for (at, found) in leaves(&found).iter().enumerate() {
        let expected: Vec<Tensor> = each
            .iter()
            .map(|(_, results)| results[at].clone())
            .collect();
        let expected = ops::stack(&expected, 0)?;
        let share = match expected.dtype()? {
            DType::F64 => 1e-9,
            DType::F32 => 1e-5,
            // One step of a half.
            _ => 1e-2,
        };
        let is_same = found.dims()? == expected.dims()?
            && found.dtype()? == expected.dtype()?
            && are_near(&found.to_vec()?, &expected.to_vec()?, share);
        if !is_same {
            return Ok(Some(Given::Differs(format!(
                "result {at} for several examples is {:?} {:?}, and {:?} {:?} one by one",
                found.dims()?,
                found.to_vec()?,
                expected.dims()?,
                expected.to_vec()?
            ))));
        }
    }
    Ok(Some(Given::Agrees))
}
