//! What a run does beside its steps, to measure how far its numbers may be from those of another way to compute them.
//!
//! Invariant: what a probe changes is numbers, and no shape that they do not decide.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use fx_differential::Call;
use fx_nn::Result;
use fx_nn::prelude::*;
use fx_nn::value::{IntoValue, Value};
use indexmap::IndexMap;
use rand::rngs::StdRng;

use crate::calls::plain;
use crate::noise::Anything;
use crate::program::Step;
use crate::refusals::OwnRule;
use crate::{compare, gradients, noise};

/// A probe of a run, which the runs of its bodies share.
#[derive(Clone)]
pub(crate) enum Probe {
    /// Moves each number by about its last bit.
    Noise(Rc<RefCell<StdRng>>),
    /// The same, and what ONNX Runtime computes as exactly as numbers around 1 is moved like these.
    FileNoise(Rc<RefCell<StdRng>>),
    /// Computes halves in `float32`, and rounds none of them, as an engine that leaves out casts.
    Wide,
    /// Notes the functions that are given what engines differ in.
    Limits(Rc<RefCell<BTreeSet<(String, Limit)>>>),
    /// Gives any numbers for what calls give that engines have rules of their own for.
    Open(Vec<&'static OwnRule>, Rc<RefCell<Anything>>),
}

/// What a tensor has that engines differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    /// NaN.
    Nan,
    /// An infinity.
    Infinity,
    /// No elements.
    Nothing,
    /// A zero with a sign.
    NegativeZero,
    /// A number below the least normal one of `float32`.
    Subnormal,
    /// Whole numbers whose product is beyond what all engines hold exactly.
    LargeProduct,
    /// A number whose square is beyond `float32`.
    LargeSquare,
    /// NaN in what a call gives of numbers.
    MadeNan,
}

/// Without halves.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        dtype => dtype,
    }
}

fn limits(x: &Tensor) -> Vec<Limit> {
    let numbers = x.to_vec().unwrap_or_default();
    let is_whole = x.dtype().is_ok_and(|dtype| !dtype.is_floating_point());
    let bits = numbers.iter().map(|number| number.abs().max(1.0).log2());
    let limits = [
        (
            Limit::LargeProduct,
            is_whole && bits.sum::<f64>() > f64::from(compare::LARGEST_WHOLE.ilog2()),
        ),
        (
            Limit::LargeSquare,
            numbers
                .iter()
                .any(|number| number.is_finite() && number * number > f64::from(f32::MAX)),
        ),
        (Limit::Nothing, numbers.is_empty()),
        (Limit::Nan, numbers.iter().any(|number| number.is_nan())),
        (
            Limit::Infinity,
            numbers.iter().any(|number| number.is_infinite()),
        ),
        (
            Limit::NegativeZero,
            numbers
                .iter()
                .any(|number| *number == 0.0 && number.is_sign_negative()),
        ),
        (
            Limit::Subnormal,
            numbers
                .iter()
                .any(|number| *number != 0.0 && number.abs() < f64::from(f32::MIN_POSITIVE)),
        ),
    ];
    let found = limits.into_iter().filter(|(_, is)| *is);
    found.map(|(limit, _)| limit).collect()
}

fn limits_of(tensors: &[Tensor]) -> Vec<Limit> {
    tensors.iter().flat_map(limits).collect()
}

/// What a call is given, and makes, that engines differ in.
fn limits_of_call(given: &[Tensor], made: &Value) -> Vec<Limit> {
    let mut limits = limits_of(given);
    if !limits.contains(&Limit::Nan) && limits_of(&compare::tensors(made)).contains(&Limit::Nan) {
        limits.push(Limit::MadeNan);
    }
    limits
}

impl Probe {
    /// The type that a value is cast to.
    pub(crate) fn cast(&self, to: DType) -> DType {
        match self {
            Probe::Wide => wide(to),
            _ => to,
        }
    }

    /// Makes the layers of a program, which calls made, those of the run.
    ///
    /// # Errors
    /// Returns an error if a tensor of a layer cannot be read.
    pub(crate) fn prepare(
        &self,
        layers: &mut [Box<dyn Module>],
        calls: &[Arc<Call>],
    ) -> Result<()> {
        match self {
            Probe::Wide => {}
            Probe::Noise(random) | Probe::FileNoise(random) => {
                let stacks = layers.iter_mut().zip(calls);
                for (layer, _) in stacks.filter(|(_, call)| noise::is_stack(call)) {
                    let mut state = IndexMap::new();
                    for (name, value) in layer.state_dict() {
                        if let Some(x) = value.downcast_ref::<Tensor>() {
                            let moved = noise::nudged(x, &mut random.borrow_mut())?;
                            state.insert(name, moved);
                        }
                    }
                    fx_nn::weights::load_state_dict(layer.as_mut(), &state)?;
                }
                return Ok(());
            }
            Probe::Limits(_) | Probe::Open(..) => return Ok(()),
        }
        for layer in layers {
            let state = layer.state_dict();
            let mut tensors = state
                .values()
                .filter_map(|value| value.downcast_ref::<Tensor>());
            if tensors.any(|x| x.dtype().is_ok_and(|dtype| wide(dtype) != dtype)) {
                nn::to_dtype(layer.as_mut(), DType::F32)?;
            }
        }
        Ok(())
    }

    /// The tensors that a call is given.
    ///
    /// # Errors
    /// Returns an error if their numbers cannot be read.
    pub(crate) fn given(&self, call: &Call, tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
        match self {
            Probe::Noise(random) | Probe::FileNoise(random) if !noise::is_exact(call) => {
                let moved = tensors.iter().map(|x| {
                    let moved = noise::nudged(x, &mut random.borrow_mut())?;
                    gradients::carried(x, moved)
                });
                moved.collect()
            }
            Probe::Noise(_) | Probe::FileNoise(_) | Probe::Limits(_) | Probe::Open(..) => {
                Ok(tensors)
            }
            Probe::Wide => tensors
                .iter()
                .map(|x| ops::to_dtype(x, wide(x.dtype()?)))
                .collect(),
        }
    }

    /// What a call gives of these tensors.
    ///
    /// # Errors
    /// Returns an error if its numbers cannot be read.
    pub(crate) fn called(&self, call: &Call, tensors: &[Tensor], given: Value) -> Result<Value> {
        let random = match self {
            Probe::Noise(random) | Probe::FileNoise(random) => random,
            Probe::Wide => return Ok(given),
            Probe::Limits(names) => {
                let limits = limits_of_call(tensors, &given).into_iter();
                let noted = limits.map(|limit| (plain(&call.name), limit));
                names.borrow_mut().extend(noted);
                return Ok(given);
            }
            Probe::Open(rules, anything) => {
                let (name, limits) = (plain(&call.name), limits_of_call(tensors, &given));
                return match rules.iter().any(|rule| rule.takes(&name, &limits)) {
                    true => anything.borrow_mut().value(&given, tensors),
                    false => Ok(given),
                };
            }
        };
        let is_around_one = matches!(self, Probe::FileNoise(_)) && noise::is_sigmoid(call);
        let Some(x) = tensors
            .first()
            .filter(|_| is_around_one || noise::cancels(call))
        else {
            return Ok(given);
        };
        let y = Tensor::from_value(given)?;
        let random = &mut random.borrow_mut();
        let moved = match is_around_one {
            true => noise::around_one(&y, random)?,
            false => noise::lost(call, &y, x, random)?,
        };
        Ok(gradients::carried(&y, moved)?.into_value())
    }

    /// A result of a step.
    ///
    /// # Errors
    /// Returns an error if its numbers cannot be read.
    pub(crate) fn result(&self, step: &Step, value: Tensor) -> Result<Tensor> {
        match self {
            Probe::Noise(random) | Probe::FileNoise(random) => {
                let moved = noise::moved(&value, step, &mut random.borrow_mut())?;
                gradients::carried(&value, moved)
            }
            Probe::Wide | Probe::Limits(_) | Probe::Open(..) => Ok(value),
        }
    }
}
