//! Gradients through branches, loops and scans: each is taken back by one of its kind, whose graphs are the gradients of
//! its graphs.
//!
//! Invariant: what a graph of the forward part computes is computed again in the backward part, from the values that its
//! iteration began with, so that nothing is kept but these.

use fx_core::control::{Cond, Scan, While, cond, while_loop};
use fx_core::ir::{ParamSpec, ValueMeta};
use fx_core::shapes::Spec;
use fx_core::trace::{FromValue, List, TraceContext};
use fx_core::value::{DType, IntoValue, Tree, Value};
use fx_core::{Error, GraphModule, Result};

use super::derivative::Cotangent;
use super::forward::{Forward, seeds, tuple};
use super::known;
use super::region::Region;
use super::source::{Source, flat, items_of, meta_of, replayed, specs_of};
use super::tape::{RegionCall, Ways};
use super::transform::{Graphs, Transform, transform};
use super::wrt::Wrt;
use crate::control::{scan, stacked};
use crate::ops;
use crate::tensor::Tensor;

/// A function run on symbolic values, through whose branches and loops gradients run.
pub(crate) fn forward(
    cx: &TraceContext,
    source: &Source,
    args: &[Value],
    wrt: &Wrt,
) -> Result<Forward> {
    Forward::run(cx, source, args, wrt, Ways::registered(region_back)?)
}

fn region_back(call: RegionCall<'_>) -> Result<Vec<Option<Cotangent>>> {
    call.region.is_repeatable()?;
    match call.region {
        Region::Branch(branch) => branch_back(branch, &call),
        Region::Scan(scan) => scan_back(scan, &call),
        Region::Loop(turns) => loop_back(turns, &call),
    }
}

/// The gradients of some inputs of a graph, from those of some of its results.
#[derive(Clone)]
struct Pulled {
    source: Source,
    wrt: Vec<usize>,
    /// The results that gradients are given of.
    of: Vec<usize>,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
    graphs: Graphs,
}

transform! { Pulled, "the gradient of a branch or a loop", |pulled| &pulled.params }

impl Pulled {
    fn new(graph: &GraphModule, wrt: Vec<usize>, of: Vec<usize>) -> Self {
        let source = Source::of(graph);
        let (params, trees) = source.with_argument("cotangents");
        Pulled {
            source,
            wrt,
            of,
            params,
            trees,
            graphs: Graphs::default(),
        }
    }

    /// The graph for inputs and gradients of results like these.
    fn graph(&self, inputs: Vec<Spec>, grads: Vec<Spec>) -> Result<GraphModule> {
        let grads = Spec::tuple(grads);
        self.graph_module(&inputs.into_iter().chain([grads]).collect::<Vec<_>>())
    }

    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let Some((grads, args)) = args.split_last() else {
            return Err(Error::msg("the gradients of the results are missing"));
        };
        let run = forward(cx, &self.source, args, &Wrt::of(self.wrt.clone()))?;
        let results = items_of(run.result.clone());
        let results = self.of.iter().map(|at| {
            let result = results.get(*at).cloned();
            result.ok_or_else(|| Error::msg("it gives fewer results than it has gradients of"))
        });
        let results = tuple(results.collect::<Result<Vec<_>>>()?);
        let seeds = seeds(&results, grads)?;
        run.pulled(cx, seeds)
    }
}

/// Runs the graph of a gradient; what it gives, item by item.
fn pulled(gm: &GraphModule, inputs: Vec<Value>, grads: Vec<Value>) -> Result<Vec<Value>> {
    let args: Vec<Value> = inputs.into_iter().chain([tuple(grads)]).collect();
    Ok(items_of(replayed(gm, flat(gm, &args)?)?))
}

/// The results that have a gradient, with it.
fn with_gradients(grad: &Cotangent) -> Result<Vec<(usize, Value)>> {
    match grad {
        Cotangent::One(grad) | Cotangent::Stacked(grad) => Ok(vec![(0, grad.into_value())]),
        Cotangent::Items(items) => {
            let items = items.iter().enumerate();
            items
                .filter_map(|(at, grad)| Some((at, grad.as_ref()?)))
                .map(|(at, grad)| match grad {
                    Cotangent::One(grad) | Cotangent::Stacked(grad) => Ok((at, grad.into_value())),
                    Cotangent::Items(_) => Err(Error::msg(
                        "a list that a step gives is taken apart: stack it with `control::stacked`",
                    )),
                })
                .collect()
        }
    }
}

/// The indices that hold.
fn indices(holds: impl IntoIterator<Item = bool>) -> Vec<usize> {
    let all = holds.into_iter().enumerate();
    all.filter_map(|(at, holds)| holds.then_some(at)).collect()
}

fn one(grad: Value) -> Result<Cotangent> {
    Tensor::from_value(grad).map(Cotangent::One)
}

/// A branch by the same condition, of the gradients of both sides.
fn branch_back(branch: &Cond, call: &RegionCall<'_>) -> Result<Vec<Option<Cotangent>>> {
    let operands = &call.args[1..];
    let wrt = indices(call.needed[1..].iter().copied());
    let mut given = vec![None; call.args.len()];
    if wrt.is_empty() {
        return Ok(given);
    }
    let (of, grads): (Vec<usize>, Vec<Value>) = with_gradients(call.grad)?.into_iter().unzip();
    let side = |side: &GraphModule| {
        let pulled = Pulled::new(side, wrt.clone(), of.clone());
        pulled.graph(specs_of(operands)?, specs_of(&grads)?)
    };
    let (then, otherwise) = (side(branch.then())?, side(branch.otherwise())?);
    let run = |gm| pulled(gm, operands.to_vec(), grads.clone()).map(tuple);
    let found: Value = cond(call.args[0].clone(), || run(&then), || run(&otherwise))?;
    for (at, grad) in wrt.into_iter().zip(items_of(found)) {
        given[at + 1] = Some(one(grad)?);
    }
    Ok(given)
}

/// The values that iterations begin with, which stay of one shape, and which of them gradients are of.
struct Carried<'v> {
    begin: &'v [Value],
    floats: Vec<usize>,
}

impl<'v> Carried<'v> {
    fn new(begin: &'v [Value], result: &Value, what: &str) -> Result<Self> {
        let whole = meta_of(result)?;
        let after = match &whole {
            ValueMeta::Tuple(items) => &items[..],
            one => std::slice::from_ref(one),
        };
        for (at, value) in begin.iter().enumerate() {
            let before = meta_of(value)?;
            let Some(tensor) = before.tensor() else {
                return Err(Error::msg(format_args!(
                    "{what} carries {}, and a gradient through it keeps tensors: carry a tensor with one element instead",
                    before.describe()
                )));
            };
            let stays = after
                .get(at)
                .and_then(ValueMeta::tensor)
                .is_some_and(|after| after.shape == tensor.shape && after.dtype == tensor.dtype);
            if !stays {
                return Err(Error::msg(format_args!(
                    "{what} carries {}, whose shape or type changes from iteration to iteration: a gradient through it keeps tensors of one shape",
                    before.describe()
                )));
            }
        }
        Ok(Carried {
            floats: indices(begin.iter().map(known::is_float)),
            begin,
        })
    }

    /// The gradients of the values after the last iteration: zeros where there is none.
    fn grads(&self, found: &[(usize, Value)]) -> Result<Vec<Value>> {
        let each = self
            .floats
            .iter()
            .map(|at| match found.iter().find(|(of, _)| of == at) {
                Some((_, grad)) => Ok(grad.clone()),
                None => zeros(&self.begin[*at]),
            });
        each.collect()
    }
}

fn zeros(like: &Value) -> Result<Value> {
    ops::zeros_like(&Tensor::from_value(like.clone())?, None).map(IntoValue::into_value)
}

/// A sum of gradients, item by item.
fn plus(sums: &[Value], grads: &[Value]) -> Result<Vec<Value>> {
    let pairs = sums.iter().zip(grads);
    pairs
        .map(|(a, b)| {
            let sum = (Tensor::from_value(a.clone())? + Tensor::from_value(b.clone())?)?;
            Ok(sum.into_value())
        })
        .collect()
}

/// A scan from the last item to the first, over the values that each step began with.
fn scan_back(of: &Scan, call: &RegionCall<'_>) -> Result<Vec<Option<Cotangent>>> {
    let (begin, rest) = call.args.split_at(of.carries());
    let (sequences, captured) = rest.split_at(of.sequences());
    let carried = Carried::new(begin, call.result, "the scan")?;
    let mut given = vec![None; call.args.len()];
    let step = of.step();
    // Sequences that are lists as tensors.
    let tensors = sequences
        .iter()
        .map(|sequence| match meta_of(sequence)?.tensor() {
            Some(_) => Ok(sequence.clone()),
            None => Ok(stacked(List::from_value(sequence.clone())?)?.into_value()),
        });
    let tensors: Vec<Value> = tensors.collect::<Result<_>>()?;
    let is_list = |at: usize| Ok::<_, Error>(meta_of(&sequences[at])?.tensor().is_none());
    // What each step began with.
    let states = match begin.len() {
        0 => Vec::new(),
        _ => {
            let (_, states): (Value, Value) = scan(
                tuple(begin),
                tuple(tensors.clone()),
                |state: Value, item: Value| {
                    let inputs = items_of(state.clone()).into_iter().chain(items_of(item));
                    let inputs = inputs.chain(captured.iter().cloned()).collect();
                    let next = items_of(replayed(step, inputs)?);
                    Ok((tuple(&next[..begin.len()]), state))
                },
            )?;
            items_of(states)
        }
    };
    let needed = &call.needed[of.carries()..];
    let of_items = indices(needed[..of.sequences()].iter().copied());
    let of_captured = indices(needed[of.sequences()..].iter().copied());
    let found = with_gradients(call.grad)?;
    let results: Vec<(usize, Value)> = found
        .iter()
        .filter(|(at, _)| *at >= of.carries())
        .cloned()
        .collect();
    // Of one step: inputs are the carried values, items and the rest; gradients come of what it carries on and gives.
    let item = |sequence: &Value| {
        let tensor = Tensor::from_value(sequence.clone())?;
        Ok::<_, Error>(Spec::tensor(
            known::dims(&tensor)?.into_iter().skip(1),
            known::dtype(&tensor)?,
        ))
    };
    let mut inputs = specs_of(begin)?;
    inputs.extend(tensors.iter().map(item).collect::<Result<Vec<_>>>()?);
    inputs.extend(specs_of(captured)?);
    let after = carried.grads(&found)?;
    let mut grads = specs_of(&after)?;
    for (_, grad) in &results {
        grads.push(item(grad)?);
    }
    let wrt: Vec<usize> = carried
        .floats
        .iter()
        .copied()
        .chain(of_items.iter().map(|at| of.carries() + at))
        .chain(of_captured.iter().map(|at| rest_of(of) + at))
        .collect();
    if wrt.is_empty() {
        return Ok(given);
    }
    let of_results = carried
        .floats
        .iter()
        .copied()
        .chain(results.iter().map(|(at, _)| *at));
    let back = Pulled::new(step, wrt, of_results.collect()).graph(inputs, grads)?;
    let turned = |value: &Value| {
        ops::flip(&Tensor::from_value(value.clone())?, 0).map(IntoValue::into_value)
    };
    let all = states
        .iter()
        .chain(&tensors)
        .chain(results.iter().map(|(_, grad)| grad));
    let all: Vec<Value> = all.map(turned).collect::<Result<_>>()?;
    let sums: Vec<Value> = of_captured
        .iter()
        .map(|at| zeros(&captured[*at]))
        .collect::<Result<_>>()?;
    let (floats, steps) = (carried.floats.len(), states.len() + tensors.len());
    let begin = tuple([tuple(after), tuple(sums)]);
    let (end, of_each): (Value, Value) = scan(begin, tuple(all), |state: Value, items: Value| {
        let [after, sums] = parts_of(state)?;
        let (after, sums) = (items_of(after), items_of(sums));
        let items = items_of(items);
        let inputs = items[..steps].iter().chain(captured).cloned().collect();
        let grads = after.into_iter().chain(items[steps..].iter().cloned());
        let found = pulled(&back, inputs, grads.collect())?;
        let (before, found) = found.split_at(floats);
        let (of_items, of_captured) = found.split_at(of_items.len());
        let state = tuple([tuple(before), tuple(plus(&sums, of_captured)?)]);
        Ok((state, tuple(of_items)))
    })?;
    let [before, sums] = parts_of(end)?;
    for (at, grad) in carried.floats.iter().zip(items_of(before)) {
        given[*at] = Some(one(grad)?);
    }
    for (at, grad) in of_items.iter().zip(items_of(of_each)) {
        let grad = Tensor::from_value(turned(&grad)?)?;
        given[of.carries() + at] = Some(match is_list(*at)? {
            true => Cotangent::Stacked(grad),
            false => Cotangent::One(grad),
        });
    }
    for (at, grad) in of_captured.iter().zip(items_of(sums)) {
        given[rest_of(of) + at] = Some(one(grad)?);
    }
    Ok(given)
}

/// Where the arguments begin that a step reads from outside.
fn rest_of(scan: &Scan) -> usize {
    scan.carries() + scan.sequences()
}

/// A loop from the last iteration to the first, over the values that each began with.
fn loop_back(of: &While, call: &RegionCall<'_>) -> Result<Vec<Option<Cotangent>>> {
    let (go, rest) = (&call.args[0], &call.args[1..]);
    let (begin, captured) = rest.split_at(of.carries());
    let carried = Carried::new(begin, call.result, "the loop")?;
    let limit = of.limit().ok_or_else(|| {
        Error::msg(
            "a gradient keeps what each iteration began with: say with `While::set_limit` how many iterations there are at most",
        )
    })?;
    let body = of.body();
    let kept = begin.iter().map(|value| {
        let x = Tensor::from_value(value.clone())?;
        let mut sizes = vec![fx_core::value::Int::from(limit as i64)];
        sizes.extend(known::sizes(&x)?);
        ops::zeros(sizes, Some(known::dtype(&x)?)).map(IntoValue::into_value)
    });
    let kept: Vec<Value> = kept.collect::<Result<_>>()?;
    let none = ops::zeros(1, Some(DType::I64))?;
    let state = tuple([go.clone(), tuple(begin), none.into_value(), tuple(kept)]);
    // Forward, with what each iteration begins with.
    let end: Value = while_loop(
        state,
        |state| Ok(first_of(state)),
        |state| {
            let [_, carries, count, kept] = parts_of::<4>(state)?;
            let (carries, kept) = (items_of(carries), items_of(kept));
            let count = Tensor::from_value(count)?;
            let kept = kept.into_iter().zip(&carries).map(|(kept, value)| {
                let value = ops::unsqueeze(&Tensor::from_value(value.clone())?, 0)?;
                ops::index_copy(&Tensor::from_value(kept)?, 0, &count, &value)
                    .map(IntoValue::into_value)
            });
            let kept = kept.collect::<Result<Vec<_>>>()?;
            let inputs = carries.into_iter().chain(captured.iter().cloned());
            let next = items_of(replayed(body, inputs.collect())?);
            let (go, next) = next
                .split_first()
                .ok_or_else(|| Error::msg("the body gives nothing"))?;
            let count = (count + 1)?.into_value();
            Ok(tuple([go.clone(), tuple(next), count, tuple(kept)]))
        },
    )?;
    let [_, _, count, kept] = parts_of::<4>(end)?;
    let kept = items_of(kept);
    let of_captured = indices(call.needed[1 + of.carries()..].iter().copied());
    let after = carried.grads(&with_gradients(call.grad)?)?;
    let wrt = carried.floats.iter().copied();
    let wrt = wrt.chain(of_captured.iter().map(|at| of.carries() + at));
    // The first result says whether to go on.
    let of_results = carried.floats.iter().map(|at| at + 1);
    let back = Pulled::new(body, wrt.collect(), of_results.collect())
        .graph(specs_of(rest)?, specs_of(&after)?)?;
    let sums: Vec<Value> = of_captured
        .iter()
        .map(|at| zeros(&captured[*at]))
        .collect::<Result<_>>()?;
    let floats = carried.floats.len();
    let state = tuple([count, tuple(after), tuple(sums)]);
    let end: Value = while_loop(
        state,
        |state| fx_core::operator::gt.call_as::<Value>((first_of(state), 0)),
        |state| {
            let [count, after, sums] = parts_of::<3>(state)?;
            let at = (Tensor::from_value(count)? - 1)?;
            let began = kept.iter().map(|kept| {
                let kept = Tensor::from_value(kept.clone())?;
                ops::squeeze(&ops::index_select(&kept, 0, &at)?, 0).map(IntoValue::into_value)
            });
            let began = began.collect::<Result<Vec<_>>>()?;
            let inputs = began.into_iter().chain(captured.iter().cloned());
            let found = pulled(&back, inputs.collect(), items_of(after))?;
            let (before, of_captured) = found.split_at(floats);
            let sums = plus(&items_of(sums), of_captured)?;
            Ok(tuple([at.into_value(), tuple(before), tuple(sums)]))
        },
    )?;
    let [_, before, sums] = parts_of::<3>(end)?;
    let mut given = vec![None; call.args.len()];
    for (at, grad) in carried.floats.iter().zip(items_of(before)) {
        given[1 + at] = Some(one(grad)?);
    }
    for (at, grad) in of_captured.iter().zip(items_of(sums)) {
        given[1 + of.carries() + at] = Some(one(grad)?);
    }
    Ok(given)
}

/// The first part of a state.
fn first_of(state: &Value) -> Value {
    match state {
        Value::Tuple(items) => items.first().cloned().unwrap_or_default(),
        other => other.clone(),
    }
}

fn parts_of<const N: usize>(state: Value) -> Result<[Value; N]> {
    <[Value; N]>::try_from(items_of(state))
        .map_err(|_| Error::msg("the state of a gradient's loop has another structure"))
}
