//! Whether what a graph gives after a rewrite is what it gave before: shapes, types, whole numbers
//! and truth values exactly, floats within what rounding explains.
//!
//! Invariant: NaN equals NaN, and the zeros of both signs are equal, as PyTorch's `assert_close` has
//! it.

use fx_core::ir::{NodeRef, Op};
use fx_core::run::{Interpretation, Interpreter};
use fx_core::tensor::Object;
use fx_core::trace::CallArgs;
use fx_core::value::{DType, Value};
use fx_core::{GraphModule, Result};

use super::draw::{Draw, made};
use crate::tensor::Tensor;

/// How far floats may be apart.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slack {
    /// How large the numbers are that results are computed from, at most 1.
    pub scale: f64,
    /// Relative and absolute, instead of what rounding explains.
    pub fixed: Option<(f64, f64)>,
    /// Whether elements that are not finite before are left out.
    pub finite: bool,
}

/// The distance from 1 to the next number.
fn step(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    }
}

/// The tensors of a value, structures taken apart, and the text of what is no tensor.
pub(super) fn leaves(value: &Value) -> (Vec<Tensor>, String) {
    let (mut tensors, mut rest) = (Vec::new(), String::new());
    value.for_each(&mut |leaf| match leaf.downcast_ref::<Tensor>() {
        Some(tensor) => {
            rest.push('t');
            tensors.push(tensor.clone());
        }
        None => match leaf {
            // What holds the others is one to what takes them apart.
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {}
            leaf => rest += &format!("{leaf};"),
        },
    });
    (tensors, rest)
}

/// The value with each tensor replaced.
pub(super) fn map_tensors(
    value: &Value,
    map: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Value> {
    if let Some(tensor) = value.downcast_ref::<Tensor>() {
        return Ok(Value::object(map(tensor)?));
    }
    Ok(match value {
        Value::List(items) => {
            let items = items.iter().map(|item| map_tensors(item, map));
            Value::List(items.collect::<Result<_>>()?)
        }
        Value::Tuple(items) => {
            let items = items.iter().map(|item| map_tensors(item, map));
            Value::Tuple(items.collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

/// What differs first.
#[derive(Debug)]
pub(super) enum Gap {
    /// A structure, a shape, a type, or elements that are exact.
    Exact(String),
    /// A float, which rounding may explain.
    Float(String),
}

impl Gap {
    /// What is wrong, of what a graph gives or of its gradient.
    pub(super) fn text(self, of: &str) -> String {
        match self {
            Gap::Exact(what) => format!("{of} {what}"),
            Gap::Float(numbers) => format!("{of} is {numbers}"),
        }
    }
}

/// The first difference of two values; `spread` has how far each float of the first moves by
/// rounding.
pub(super) fn gap(
    before: &Value,
    after: &Value,
    slack: Slack,
    spread: Option<&[Vec<f64>]>,
) -> Result<Option<Gap>> {
    let ((ours, rest), (theirs, others)) = (leaves(before), leaves(after));
    if rest != others {
        return Ok(Some(Gap::Exact("has another structure".to_string())));
    }
    for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        let spread = spread.and_then(|all| all.get(at));
        if let Some(gap) = tensor_gap(a, b, slack, spread.map(Vec::as_slice))? {
            return Ok(Some(gap));
        }
    }
    Ok(None)
}

fn tensor_gap(
    before: &Tensor,
    after: &Tensor,
    slack: Slack,
    spread: Option<&[f64]>,
) -> Result<Option<Gap>> {
    let (shape, dtype) = (before.dims()?, before.dtype()?);
    if shape != after.dims()? {
        return Ok(Some(Gap::Exact("has another shape".to_string())));
    }
    if dtype != after.dtype()? {
        return Ok(Some(Gap::Exact("has another element type".to_string())));
    }
    if !dtype.is_floating_point() {
        let same = before.to_data()?.bytes()? == after.to_data()?.bytes()?;
        return Ok((!same).then(|| Gap::Exact("has other elements".to_string())));
    }
    let (ours, theirs) = (before.to_vec()?, after.to_vec()?);
    let scale = largest(&ours).max(slack.scale).min(1.0);
    let step = step(dtype);
    for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        if a == b || (a.is_nan() && b.is_nan()) || (slack.finite && !a.is_finite()) {
            continue;
        }
        let spread = spread.and_then(|all| all.get(at)).copied().unwrap_or(0.0);
        let tolerance = match slack.fixed {
            Some((relative, absolute)) => relative * a.abs() + absolute,
            None => step * (8.0 * a.abs() + 16.0 * scale) + 8.0 * spread,
        };
        if spread == f64::INFINITY || (a - b).abs() <= tolerance {
            continue;
        }
        let place = match shape.len() {
            0 => String::new(),
            _ => format!(" at {:?}", place(at, shape)),
        };
        return Ok(Some(Gap::Float(format!("{b:?} for {a:?}{place}"))));
    }
    Ok(None)
}

/// The largest size of the finite ones.
fn largest(numbers: &[f64]) -> f64 {
    let finite = numbers.iter().filter(|x| x.is_finite());
    finite.fold(0.0, |most, x| most.max(x.abs()))
}

/// The largest size of the finite elements of all.
pub(super) fn largest_of(tensors: &[Tensor]) -> Result<f64> {
    let mut most = 0.0f64;
    for x in tensors {
        most = most.max(largest(&x.to_vec()?));
    }
    Ok(most)
}

/// Where an element stands.
fn place(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut place = vec![0; shape.len()];
    for (index, size) in place.iter_mut().zip(shape).rev() {
        *index = at % size.max(&1);
        at /= size.max(&1);
    }
    place
}

/// Runs a graph with each float moved by a step of its type.
struct Shaken(Draw);

impl Shaken {
    /// Inputs that are small numbers of few bits stay: what a function does just there is not
    /// rounding.
    fn moved(&mut self, x: &Tensor, is_input: bool) -> Result<Tensor> {
        let dtype = x.dtype()?;
        if !dtype.is_floating_point() {
            return Ok(x.clone());
        }
        let step = step(dtype);
        let mut numbers = x.to_vec()?;
        for x in &mut numbers {
            let is_exact = is_input && (*x * 4.0).fract() == 0.0 && x.abs() <= 64.0;
            if x.is_finite() && !is_exact {
                *x *= 1.0 + if self.0.chance(0.5) { step } else { -step };
            }
        }
        made(numbers, x.dims()?, dtype)
    }
}

impl Interpreter for Shaken {
    fn run_node(&mut self, run: &mut Interpretation<'_>, node: NodeRef<'_>) -> Result<Value> {
        let value = run.run_node(self, node)?;
        match node.op() {
            Op::Output => Ok(value),
            op => map_tensors(&value, &mut |x| self.moved(x, !op.is_call())),
        }
    }
}

/// How far each float that a graph gives moves if every number on the way, its inputs too, moves by
/// a step of its type.
pub(super) fn spread(
    gm: &GraphModule,
    inputs: &[Value],
    before: &Value,
    seed: u64,
) -> Result<Vec<Vec<f64>>> {
    let (ours, _) = leaves(before);
    let mut all = Vec::with_capacity(ours.len());
    for tensor in &ours {
        all.push(vec![0.0f64; tensor.candle()?.elem_count()]);
    }
    for turn in 0..12 {
        crate::manual_seed(seed);
        let call = CallArgs {
            args: inputs.to_vec(),
            kwargs: Vec::new(),
        };
        let shaken = gm.interpret(&mut Shaken(Draw::new(seed ^ (turn << 32))), call);
        // What refuses moved numbers has none.
        let Ok(shaken) = shaken else { continue };
        let shaken: Value = shaken;
        for ((a, b), spread) in ours.iter().zip(leaves(&shaken).0).zip(&mut all) {
            if !a.dtype()?.is_floating_point() || a.dims()? != b.dims()? {
                continue;
            }
            for ((a, b), most) in a.to_vec()?.iter().zip(b.to_vec()?).zip(spread) {
                let moved = match (a.is_finite(), b.is_finite()) {
                    (true, true) => (a - b).abs(),
                    (false, false) => 0.0,
                    _ => f64::INFINITY,
                };
                *most = most.max(moved);
            }
        }
    }
    Ok(all)
}

/// What is lost to the steps of a rewritten graph: up to 7 bits of each number, or of what it is
/// computed from, for a formula that loses more is a worse one.
const STEPS: f64 = 128.0;

/// The spread of a result, with that of the steps by which a rewritten graph computes it.
pub(super) fn with_steps(
    mut own: Vec<Vec<f64>>,
    before: &Value,
    steps: &[Vec<f64>],
    scale: f64,
) -> Result<Vec<Vec<f64>>> {
    let (tensors, _) = leaves(before);
    for ((own, tensor), steps) in own.iter_mut().zip(tensors).zip(steps) {
        let (numbers, step) = (tensor.to_vec()?, step(tensor.dtype()?));
        for ((most, number), steps) in own.iter_mut().zip(numbers).zip(steps) {
            let size = number.abs().max(scale.min(1.0));
            *most = most.max(steps.min(STEPS * step * size));
        }
    }
    Ok(own)
}
