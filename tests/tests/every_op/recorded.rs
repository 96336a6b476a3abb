//! The recorded calls as samples: what PyTorch gave is what each route has to give.

use std::collections::BTreeMap;

use fx_core::Result;
use fx_differential::{
    Call, Elements, Expected, Kind, Mode, Outcome, compared, eager, gradient_difference, graph_of,
    reason, recorded, recorded_gradients,
};
use fx_nn::prelude::*;
use fx_nn::testing::{Given, Missing, Route, Sample};

/// What PyTorch's gradient is not the derivative of: half of a symmetric matrix is read, a result is not unique, a
/// padding index does not learn, an argument has none, a bound is no part of the formula, steps have the slope of what they
/// stand for. `gradients.jsonl` has PyTorch's.
const CONVENTIONS: [&str; 14] = [
    "cholesky",
    "eigh",
    "eigvalsh",
    "pinv",
    "pinverse",
    "svd",
    "lstsq",
    "gammainc",
    "gammaincc",
    "zeta",
    "embedding",
    "fake_quantize_affine",
    "gaussian_nll_loss",
    "GaussianNLLLoss",
];

/// The recorded calls of each operation, and those whose gradients are recorded; a method is its function's.
pub fn by_name() -> Result<BTreeMap<(&'static str, String), Vec<Call>>> {
    let mut names: BTreeMap<_, Vec<Call>> = BTreeMap::new();
    for line in recorded()?.lines().chain(recorded_gradients()?.lines()) {
        let call = Call::parse(line)?;
        let chapter = match call.kind {
            Kind::Function | Kind::Method => "Functions",
            Kind::Operator => "Operators",
            Kind::Layer => "Layers",
        };
        names
            .entry((chapter, call.name.clone()))
            .or_default()
            .push(call);
    }
    Ok(names)
}

/// A recorded call as a sample.
pub fn sample(call: &Call) -> Sample<'_> {
    let (module, args) = match graph_of(call) {
        Ok((module, args)) => (Ok(module), args),
        Err(error) => (Err(error), Vec::new()),
    };
    let name = format!("#{}", call.id);
    let judged = move |route: &str, result: &Result<Value>| judge(call, route, result);
    let sample = Sample::new(&name, module, args, || eager(call), judged);
    let sample = match CONVENTIONS.contains(&&*call.name) {
        true => sample.without("gradient", Missing::Convention),
        false => sample,
    };
    match call.is_random() {
        true => sample.random(),
        false => sample,
    }
}

/// The gradient of a recorded call by differences. What differs where PyTorch has the same gradient, as at ties and
/// infinities, is PyTorch's convention.
pub struct Gradient<'c> {
    pub call: &'c Call,
    pub by_differences: &'c dyn Route,
}

impl Route for Gradient<'_> {
    fn name(&self) -> &str {
        self.by_differences.name()
    }

    fn run(&self, sample: &Sample<'_>) -> Result<Given> {
        match self.by_differences.run(sample) {
            Ok(Given::Differs(_)) | Err(_) if self.is_pytorchs() => {
                Ok(Given::Missing(Missing::Convention))
            }
            given => given,
        }
    }
}

impl Gradient<'_> {
    fn is_pytorchs(&self) -> bool {
        let difference = gradient_difference(self.call, Mode::Traced, None);
        difference.is_none_or(|difference| reason(self.call, &difference).is_some())
    }
}

fn judge(call: &Call, route: &str, result: &Result<Value>) -> Option<String> {
    let mut call = call.clone();
    if let Outcome::Value(expected) = &mut call.outcome {
        // The buffers that a layer moves in training are no results of a graph.
        let moves = call.made.as_ref().is_some_and(|made| made.training);
        if let (Expected::List(items), true, true) = (&mut *expected, moves, route != "eager")
            && !matches!(result, Ok(Value::List(_)))
        {
            *expected = items.remove(0);
        }
        if ["onnx", "stablehlo", "composed", "decomposed"].contains(&route) {
            *expected = rounded(expected.clone());
        }
    }
    let difference = compared(&call, result)?;
    match reason(&call, &difference) {
        Some(_) => None,
        None => Some(difference.text),
    }
}

/// With the tolerance that another order of sums needs, relative to the largest element.
fn rounded(expected: Expected) -> Expected {
    match expected {
        Expected::List(items) => Expected::List(items.into_iter().map(rounded).collect()),
        Expected::Tensor {
            shape,
            dtype,
            elements: Elements::Float(all),
            tolerance,
            spread,
        } => {
            let finite = all.iter().filter(|x| x.is_finite());
            let scale = finite.fold(0f64, |most, x| most.max(x.abs()));
            let step = match dtype {
                DType::F16 => 2f64.powi(-8),
                DType::BF16 => 2f64.powi(-5),
                _ => 1e-5,
            };
            Expected::Tensor {
                shape,
                dtype,
                elements: Elements::Float(all),
                tolerance: tolerance + 4.0 * spread + step * scale,
                spread,
            }
        }
        other => other,
    }
}
