//! The gradients of a call in several ways, compared with those of PyTorch's backward: the same elements, NaN and
//! infinities in the same places.

use fx_nn::func::{Transform, Wrt, parameters as parameters_at, vjp};
use fx_nn::module::{ComponentExt, Module};
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_nn::{Error, Gradients, Result};

use crate::call::{Call, Outcome};
use crate::judge::{Difference, Kind};
use crate::layers;
use crate::run::{Mode, Plant, forward, graph_of_tensors, is_plain, run_on, unless_it_panics};
use crate::tensor::{Elements, Expected};

/// The ways in which a call's gradients are asked for.
pub(crate) const MODES: [Mode; 5] = [
    Mode::Transformed,
    Mode::Eager,
    Mode::Traced,
    Mode::Decomposed,
    Mode::CompiledToLearn,
];

/// How far an element may be from PyTorch's, in proportion to it; the line says how far it may be beside that.
const NEAR: f64 = 1e-9;

/// Makes the call, and compares its gradients with PyTorch's.
pub fn gradient_difference(
    call: &Call,
    mode: Mode,
    plant: Option<Plant<'_>>,
) -> Option<Difference> {
    let found = unless_it_panics(|| {
        let Outcome::Gradients(expected) = &call.outcome else {
            return None;
        };
        match gradients(call, expected, mode, plant) {
            Ok(found) => compare(expected, &found),
            // Compiled code has no gradients, and says so.
            Err(error)
                if mode == Mode::CompiledToLearn && error.to_string().contains("gradient") =>
            {
                None
            }
            Err(error) => Some(different(format!("refused: {error}"))),
        }
    });
    found.map(|found| Difference {
        kind: Kind::Gradient,
        ..found
    })
}

/// A tensor that learns, and its gradient.
struct Found {
    values: Vec<f64>,
    gradient: Vec<f64>,
}

fn different(text: String) -> Difference {
    Difference::new(Kind::Gradient, text)
}

/// The gradients of the call's tensors that learn, then of its layer's parameters; nothing of the others.
fn gradients(
    call: &Call,
    expected: &[Expected],
    mode: Mode,
    plant: Option<Plant<'_>>,
) -> Result<Vec<Option<Found>>> {
    let learns = |at: usize| matches!(expected.get(at), Some(Expected::Tensor { .. }));
    let (mut leaves, views) = call.leaves(learns)?;
    if mode == Mode::Transformed && !is_plain(call) {
        return transformed(call, expected, &leaves, &views, plant);
    }
    let result = match &call.made {
        Some(made) => {
            let layer = layers::layer(&call.name, made)?;
            leaves.extend(parameters(&*layer, &made.learning)?);
            forward(call, &*layer, &views, mode)?.0
        }
        None => run_on(call, &views, mode)?,
    };
    let result = match plant {
        Some(plant) => plant(call, result),
        None => result,
    };
    let mut asked = Vec::new();
    ask(&result, &mut asked)?;
    let total = asked.into_iter().reduce(|sum, next| sum? + next?);
    let total = total.transpose()?;
    let store = match total {
        Some(total) if total.requires_grad()? => Some(total.backward()?),
        _ => None,
    };
    let each = leaves.iter().enumerate();
    each.map(|(at, leaf)| match learns(at) {
        true => Ok(Some(Found {
            values: leaf.to_vec()?,
            gradient: of(leaf, store.as_ref())?,
        })),
        false => Ok(None),
    })
    .collect()
}

/// The gradients by `func::vjp`, as a graph.
fn transformed(
    call: &Call,
    expected: &[Expected],
    leaves: &[Tensor],
    views: &[Tensor],
    plant: Option<Plant<'_>>,
) -> Result<Vec<Option<Found>>> {
    let plain = views
        .iter()
        .map(Tensor::detach)
        .collect::<Result<Vec<_>>>()?;
    let (gm, values) = graph_of_tensors(call, &plain)?;
    let result: Value = gm.forward(CallArgs {
        args: values.clone(),
        kwargs: Vec::new(),
    })?;
    let mut count = 0;
    let mut cotangent = weighted(&result, &mut count)?;
    if let Some(plant) = plant {
        cotangent = plant(call, cotangent);
    }
    let of: Vec<usize> = (0..values.len())
        .filter(|at| has_floats(&values[*at]))
        .collect();
    let learning = call
        .made
        .as_ref()
        .map(|made| made.learning.clone())
        .unwrap_or_default();
    let inputs = of.len();
    let mut wrt = Wrt::from(of);
    for path in &learning {
        wrt = wrt.and(parameters_at(path.clone()));
    }
    let mut args = values;
    args.push(cotangent);
    let (_, grads): (Value, Value) = vjp(&gm).wrt(wrt).call(CallArgs {
        args,
        kwargs: Vec::new(),
    })?;
    let (inputs, named) = match (inputs, learning.is_empty(), &grads) {
        (_, true, _) => (grads.clone(), None),
        (0, false, _) => (Value::Tuple(Box::new([])), Some(grads.clone())),
        (_, false, Value::Tuple(both)) => (both[0].clone(), Some(both[1].clone())),
        _ => return Err(Error::msg("the gradients have another structure")),
    };
    // Back through the views of the leaves, by the tape.
    let mut of_views = Vec::new();
    inputs.for_each(&mut |value| {
        if let Some(grad) = value.downcast_ref::<Tensor>() {
            of_views.push(grad.clone());
        }
    });
    let mut of_views = of_views.into_iter();
    let mut found = Vec::with_capacity(expected.len());
    for (at, (leaf, view)) in leaves.iter().zip(views).enumerate() {
        let grad = match view.dtype()?.is_floating_point() {
            true => of_views.next(),
            false => None,
        };
        let learns = matches!(expected.get(at), Some(Expected::Tensor { .. }));
        let Some(grad) = grad.filter(|_| learns) else {
            found.push(None);
            continue;
        };
        if grad.dims()? != view.dims()? {
            return Err(Error::msg(format_args!(
                "a gradient of shape {:?} of {:?}",
                grad.dims()?,
                view.dims()?
            )));
        }
        found.push(Some(Found {
            values: leaf.to_vec()?,
            gradient: through(leaf, view, &grad)?,
        }));
    }
    if let Some(Value::Dict(named)) = &named {
        for path in &learning {
            let grad = named
                .get(path.as_str())
                .and_then(Value::downcast_ref::<Tensor>);
            let grad = grad.ok_or_else(|| Error::msg(format_args!("no gradient of `{path}`")))?;
            let value = gm.parameter(path)?;
            let value = value
                .downcast_ref::<Tensor>()
                .ok_or_else(|| Error::msg("no tensor"))?;
            found.push(Some(Found {
                values: value.to_vec()?,
                gradient: grad.to_vec()?,
            }));
        }
    }
    Ok(found)
}

/// The gradient of a leaf from that of a view of it: the elements by their places, so that infinities stay what they are.
fn through(leaf: &Tensor, view: &Tensor, grad: &Tensor) -> Result<Vec<f64>> {
    let count: usize = view.dims()?.iter().product();
    let given = grad.to_vec()?;
    let mut found = vec![0.0; leaf.dims()?.iter().product()];
    for (at, given) in given.into_iter().enumerate().take(count) {
        let mut unit = vec![0.0; count];
        unit[at] = 1.0;
        let unit = Tensor::from_vec(unit, view.dims()?)?.to_dtype(view.dtype()?)?;
        let place = (view * unit)?.sum(..)?.backward()?;
        let place = place
            .get(leaf)?
            .ok_or_else(|| Error::msg("a view of no leaf"))?
            .to_vec()?;
        for (sum, weight) in found.iter_mut().zip(place) {
            if weight != 0.0 {
                *sum += weight * given;
            }
        }
    }
    Ok(found)
}

fn has_floats(value: &Value) -> bool {
    let mut found = false;
    value.for_each(&mut |value| {
        found |= value
            .downcast_ref::<Tensor>()
            .is_some_and(|x| x.dtype().is_ok_and(|dtype| dtype.is_floating_point()));
    });
    found
}

/// The weights of [`ask`] as gradients of the results, in their structure.
fn weighted(result: &Value, asked: &mut usize) -> Result<Value> {
    Ok(match result {
        Value::List(items) => Value::List(
            items
                .iter()
                .map(|item| weighted(item, asked))
                .collect::<Result<_>>()?,
        ),
        Value::Tuple(items) => Value::Tuple(
            items
                .iter()
                .map(|item| weighted(item, asked))
                .collect::<Result<_>>()?,
        ),
        other => {
            let Some(y) = other.downcast_ref::<Tensor>() else {
                return Ok(other.clone());
            };
            if !y.dtype()?.is_floating_point() {
                return Ok(other.clone());
            }
            let count = y.dims()?.iter().product();
            let weight = |at: usize| (((at * 37 + 11 * *asked) % 17) as f64 - 8.5) / 4.0;
            let weights: Vec<f64> = (0..count).map(weight).collect();
            *asked += 1;
            Value::object(Tensor::from_vec(weights, y.dims()?)?.to_dtype(y.dtype()?)?)
        }
    })
}

fn parameters(layer: &dyn Module, paths: &[String]) -> Result<Vec<Tensor>> {
    let all = layer.named_parameters();
    let find = |path: &String| {
        let found = all
            .get(path)
            .and_then(|value| value.downcast_ref::<Tensor>());
        found
            .cloned()
            .ok_or_else(|| Error::msg(format_args!("the layer has no parameter `{path}`")))
    };
    paths.iter().map(find).collect()
}

/// The gradient of a leaf; zeros where none arrives.
fn of(leaf: &Tensor, store: Option<&Gradients>) -> Result<Vec<f64>> {
    match store.map(|store| store.get(leaf)).transpose()?.flatten() {
        Some(gradient) => {
            if gradient.dims()? != leaf.dims()? {
                let (own, found) = (leaf.dims()?, gradient.dims()?);
                return Err(Error::msg(format_args!(
                    "a gradient of shape {found:?} of {own:?}"
                )));
            }
            gradient.to_vec()
        }
        None => Ok(vec![0.0; leaf.dims()?.iter().product()]),
    }
}

/// The sum of each float tensor of a result, with a weight for each element by its place and the tensor's, as
/// `gradients.py` has it.
fn ask(result: &Value, asked: &mut Vec<Result<Tensor>>) -> Result<()> {
    match result {
        Value::List(items) | Value::Tuple(items) => {
            items.iter().try_for_each(|item| ask(item, asked))
        }
        other => {
            let Some(y) = other.downcast_ref::<Tensor>() else {
                return Ok(());
            };
            if y.dtype()?.is_floating_point() {
                let count = y.dims()?.iter().product();
                let weight = |at: usize| (((at * 37 + 11 * asked.len()) % 17) as f64 - 8.5) / 4.0;
                let weights: Vec<f64> = (0..count).map(weight).collect();
                let weights = Tensor::from_vec(weights, y.dims()?)?;
                asked.push((y.to_dtype(DType::F64)? * weights)?.sum(..));
            }
            Ok(())
        }
    }
}

fn compare(expected: &[Expected], found: &[Option<Found>]) -> Option<Difference> {
    if expected.len() != found.len() {
        return Some(different(format!(
            "{} gradients, expected {}",
            found.len(),
            expected.len()
        )));
    }
    expected
        .iter()
        .zip(found)
        .enumerate()
        .find_map(|(tensor, (expected, found))| {
            let Expected::Tensor {
                elements: Elements::Float(all),
                tolerance,
                spread,
                ..
            } = expected
            else {
                return None;
            };
            let found = found.as_ref()?;
            let each = all.iter().zip(&found.gradient).zip(&found.values);
            let ((expected, gradient), value) =
                each.clone().find(|((a, b), _)| !is_near(**a, **b, *tolerance))?;
            Some(Difference {
                floats: Some((*gradient, *expected)),
                spread: *spread,
                input: Some(*value),
                ..different(format!(
                    "tensor {tensor} has at {value:e} the gradient {gradient:e}, expected {expected:e}"
                ))
            })
        })
}

fn is_near(expected: f64, found: f64, tolerance: f64) -> bool {
    match expected.is_finite() && found.is_finite() {
        true => (expected - found).abs() <= tolerance + NEAR * expected.abs(),
        false => expected == found || (expected.is_nan() && found.is_nan()),
    }
}
