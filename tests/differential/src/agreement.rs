//! Compiled code beside its graph: on arguments of other sizes and types than it was compiled for, and with other
//! numbers in the call, it gives what the graph gives, and refuses what the graph refuses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::testing::runs_kernels;
use fx_nn::trace::CallArgs;
use fx_nn::value::IntoValue;
use fx_nn::{GraphModule, Result};

use crate::call::{Call, Kind};
use crate::run::{compiled, recorded_call};
use crate::shapes::replaced;

/// Numbers that a call is made with in place of its own.
const NUMBERS: [i64; 5] = [-2, -1, 0, 7, i64::MAX];

/// How far numbers of the two may be apart, relatively.
const NEAR: f64 = 1e-4;

/// What goes through a sequence step by step.
const OF_STEPS: [&str; 3] = ["gru", "rnn_relu", "rnn_tanh"];

/// How far these may be apart in 16 bits: two of the last bits of bfloat16.
const NEAR_OF_STEPS: f64 = 1.0 / 128.0;

/// Compares compiled code with its graph on many arguments; returns how many, and the differences.
pub fn compiled_agreement(call: &Call) -> Result<(usize, Vec<String>)> {
    let mut found = (0, Vec::new());
    if !matches!(call.kind, Kind::Function | Kind::Method | Kind::Operator) {
        return Ok(found);
    }
    let tensors = call.tensors()?;
    let Ok(gm) = recorded_call(call, &tensors) else {
        return Ok(found);
    };
    // What draws random numbers gives others each time.
    let is_drawn = |node: fx_nn::ir::NodeRef<'_>| !node.target().contains("assert");
    if gm.impure_nodes().any(is_drawn) {
        return Ok(found);
    }
    let Some(fast) = with_kernels(&gm, &tensors)? else {
        return Ok(found);
    };
    for at in 0..tensors.len() {
        for other in others(&tensors[at])? {
            let mut args = tensors.clone();
            args[at] = other;
            found.0 += 1;
            found.1.extend(differs(&gm, &fast, &args));
        }
    }
    for number in NUMBERS {
        for at in 0.. {
            let mut other = call.clone();
            let mut left = at;
            if !replaced(&mut other.args, &mut left, number) {
                break;
            }
            let Ok(gm) = recorded_call(&other, &tensors) else {
                continue;
            };
            found.0 += 1;
            match compiled(&gm, &given(&tensors)) {
                Ok(fast) => found.1.extend(differs(&gm, &fast, &tensors)),
                Err(error) => {
                    if gm.forward::<Value>(given(&tensors)).is_ok() {
                        let text = format!("with {number}: not compiled: {error}");
                        found.1.push(text);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// The code of a graph, if it has a kernel that is not the function itself.
fn with_kernels(gm: &GraphModule, tensors: &[Tensor]) -> Result<Option<GraphModule>> {
    let Ok(fast) = compiled(gm, &given(tensors)) else {
        return Ok(None);
    };
    // The code is made for the first run.
    let _ = fast.forward::<Value>(given(tensors));
    Ok(runs_kernels(&fast)?.then_some(fast))
}

fn given(tensors: &[Tensor]) -> CallArgs {
    let all = tensors.iter().map(IntoValue::into_value);
    CallArgs {
        args: vec![Value::List(all.collect())],
        kwargs: Vec::new(),
    }
}

/// Tensors of other sizes and types.
fn others(tensor: &Tensor) -> Result<Vec<Tensor>> {
    let dims = tensor.dims()?.to_vec();
    let mut shapes = Vec::new();
    for at in 0..dims.len() {
        for size in [0, 1, dims[at] + 1, dims[at] * 2] {
            let mut other = dims.clone();
            other[at] = size;
            shapes.push(other);
        }
        let mut fewer = dims.clone();
        fewer.remove(at);
        shapes.push(fewer);
        let mut swapped = dims.clone();
        swapped.swap(at, 0);
        shapes.push(swapped);
    }
    let mut more = dims.clone();
    more.insert(0, 1);
    shapes.push(more);
    let mut others = Vec::new();
    let dtype = tensor.dtype()?;
    for shape in shapes {
        if shape != dims {
            others.extend(filled(&shape)?.to_dtype(dtype).ok());
        }
    }
    for dtype in [DType::F32, DType::F64, DType::I64, DType::Bool] {
        others.extend(tensor.to_dtype(dtype).ok());
    }
    Ok(others)
}

/// Small numbers of both signs.
fn filled(shape: &[usize]) -> Result<Tensor> {
    let many = shape.iter().product();
    let numbers = (0..many).map(|at: usize| (at * 7 % 5) as f32 - 1.5);
    Tensor::from_vec(numbers.collect(), shape.to_vec())
}

/// How compiled code differs from its graph on arguments; `None` if it does not.
fn differs(gm: &GraphModule, fast: &GraphModule, tensors: &[Tensor]) -> Option<String> {
    // A graph rounds 16 bits after each step of a sequence, code at the end.
    let is_of_steps = |node: fx_nn::ir::NodeRef<'_>| {
        let name = node.target().rsplit("::").next();
        name.is_some_and(|name| OF_STEPS.contains(&name))
    };
    let is_half = |x: &Tensor| matches!(x.dtype(), Ok(DType::F16 | DType::BF16));
    let near = match gm.graph().nodes().any(is_of_steps) && tensors.iter().any(is_half) {
        true => NEAR_OF_STEPS,
        false => NEAR,
    };
    let run = |gm: &GraphModule| {
        let run = AssertUnwindSafe(|| gm.forward::<Value>(given(tensors)));
        catch_unwind(run).map_err(|_| "a panic")
    };
    let problem = match (run(gm), run(fast)) {
        (Err(_), _) => None, // The function's own.
        (_, Err(panic)) => Some(panic.to_string()),
        (Ok(Err(eager)), Ok(Err(compiled))) => {
            (eager.to_string() != compiled.to_string()).then(|| format!("{compiled}, not {eager}"))
        }
        (Ok(Err(eager)), Ok(Ok(compiled))) => Some(format!(
            "{}, not refused: {eager}",
            ValueMeta::of(&compiled)
        )),
        (Ok(Ok(_)), Ok(Err(compiled))) => Some(format!("refused: {compiled}")),
        (Ok(Ok(eager)), Ok(Ok(compiled))) => apart(&eager, &compiled, near),
    };
    let args: Vec<String> = tensors
        .iter()
        .map(|x| x.clone().into_value().describe())
        .collect();
    problem.map(|problem| format!("{} of {}: {problem}", gm.graph(), args.join(", ")))
}

/// How two results differ by more than `near`, relatively.
fn apart(expected: &Value, found: &Value, near: f64) -> Option<String> {
    if let (Value::List(a) | Value::Tuple(a), Value::List(b) | Value::Tuple(b)) = (expected, found)
    {
        let mut both = a.iter().zip(b.iter());
        return match a.len() == b.len() {
            true => both.find_map(|(a, b)| apart(a, b, near)),
            false => Some(format!("{} items, not {}", b.len(), a.len())),
        };
    }
    let tensors = (
        expected.downcast_ref::<Tensor>(),
        found.downcast_ref::<Tensor>(),
    );
    let (Some(a), Some(b)) = tensors else {
        return (expected.to_string() != found.to_string())
            .then(|| format!("{found}, not {expected}"));
    };
    let (Ok(ad), Ok(bd)) = (a.dtype(), b.dtype()) else {
        return Some("a tensor without a type".into());
    };
    if ad != bd || a.dims().ok() != b.dims().ok() {
        return Some(format!(
            "{}, not {}",
            ValueMeta::of(found),
            ValueMeta::of(expected)
        ));
    }
    let (Ok(a), Ok(b)) = (a.to_vec(), b.to_vec()) else {
        return None;
    };
    let (a, b): (Vec<f64>, Vec<f64>) = (a, b);
    let largest = a
        .iter()
        .filter(|x| x.is_finite())
        .fold(1.0, |m: f64, x| m.max(x.abs()));
    let is_near =
        |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= near * largest;
    let mut both = a.iter().zip(&b);
    let (a, b) = both.find(|(a, b)| !is_near(**a, **b))?;
    Some(format!("{b}, not {a}"))
}
