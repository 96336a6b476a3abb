//! The gradients of a call in several ways, compared with those of PyTorch's backward: the same elements, NaN and
//! infinities in the same places.

use fx_nn::module::{ComponentExt, Module};
use fx_nn::prelude::*;
use fx_nn::{Error, Gradients, Result};

use crate::call::{Call, Outcome};
use crate::judge::{Difference, Kind};
use crate::layers;
use crate::run::{Mode, Plant, forward, run_on, unless_it_panics};
use crate::tensor::{Elements, Expected};

/// The ways in which a call's gradients are asked for.
pub(crate) const MODES: [Mode; 4] = [
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
