//! One step of an optimizer as a function of tensors: what `step` does in place, as a call that a graph has.
//!
//! Invariant: a function gives the new parameter, then the new state, in the order of [`UpdateRule::state`].

use fx_core::ir::ValueMeta;
use fx_core::passes::CoreSet;
use fx_core::shapes::{RuleCall, ShapeRule};
use fx_core::trace::FromValue;
use fx_core::value::{Float, IntoValue, Value};
use fx_core::{Result, function, function_table, operator, wrap};

use crate::ops;
use crate::tensor::Tensor;

/// How an optimizer changes a parameter by its gradient, with its options.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum UpdateRule {
    /// That of [`SGD`](super::SGD).
    Sgd {
        /// How much of the previous direction is kept.
        momentum: f64,
        /// How much of the gradient the momentum leaves out.
        dampening: f64,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64,
        /// Whether the momentum is applied ahead.
        nesterov: bool,
    },
    /// That of [`Adam`](super::Adam) and of [`AdamW`](super::AdamW).
    Adam {
        /// How much of the averages of gradients and of their squares is kept.
        betas: (f64, f64),
        /// The number added to the divisor.
        eps: f64,
        /// How much parameters decay.
        weight_decay: f64,
        /// Whether the decay changes the parameter itself, and not its gradient.
        is_decoupled: bool,
    },
}

impl UpdateRule {
    /// The names of the state of a parameter: tensors of its shape, which begin as zeros.
    pub fn state(&self) -> &'static [&'static str] {
        match self {
            UpdateRule::Sgd { momentum, .. } if *momentum == 0.0 => &[],
            UpdateRule::Sgd { .. } => &["momentum_buffer"],
            UpdateRule::Adam { .. } => &["exp_avg", "exp_avg_sq"],
        }
    }

    /// The new parameter and its new state. `step` counts from 1. `grad_scale` multiplies the gradient; where
    /// `found_inf` is 1, nothing changes.
    ///
    /// # Errors
    /// Returns an error if the shapes differ.
    pub fn apply(&self, of: &Updated<'_>) -> Result<Vec<Tensor>> {
        let Updated {
            parameter,
            gradient,
            state,
            lr,
            step,
            grad_scale,
            found_inf,
        } = *of;
        match *self {
            UpdateRule::Sgd {
                momentum,
                dampening,
                weight_decay,
                nesterov,
            } => {
                let buffer = state.first();
                let found = fused_sgd(
                    parameter,
                    gradient,
                    buffer,
                    lr,
                    step,
                    momentum,
                    dampening,
                    weight_decay,
                    nesterov,
                    grad_scale,
                    found_inf,
                )?;
                items(found, 1 + self.state().len())
            }
            UpdateRule::Adam {
                betas: (beta1, beta2),
                eps,
                weight_decay,
                is_decoupled,
            } => {
                let found = fused_adam(
                    parameter,
                    gradient,
                    &state[0],
                    &state[1],
                    lr,
                    step,
                    beta1,
                    beta2,
                    eps,
                    weight_decay,
                    is_decoupled,
                    grad_scale,
                    found_inf,
                )?;
                items(found, 1 + self.state().len())
            }
        }
    }
}

/// What an update is made of.
#[derive(Debug, Clone, Copy)]
pub struct Updated<'u> {
    /// The parameter.
    pub parameter: &'u Tensor,
    /// Its gradient.
    pub gradient: &'u Tensor,
    /// Its state.
    pub state: &'u [Tensor],
    /// The learning rate.
    pub lr: Float,
    /// How many steps there are with this one.
    pub step: Float,
    /// What multiplies the gradient: one number.
    pub grad_scale: Option<&'u Tensor>,
    /// One number: 1 if nothing is to change, else 0.
    pub found_inf: Option<&'u Tensor>,
}

/// The tensors of a tuple, which may be symbolic.
fn items(found: Value, count: usize) -> Result<Vec<Tensor>> {
    if let Value::Tuple(items) = &found {
        return items.iter().cloned().map(Tensor::from_value).collect();
    }
    let each = (0..count).map(|at| operator::getitem.call_as((found.clone(), at as i64)));
    each.collect()
}

/// One step of Adam, or of AdamW if the decay is decoupled (`torch._fused_adamw_`, on values): the parameter, the
/// average of gradients and that of their squares.
///
/// ```
/// use fx_nn::optim::fused_adam;
/// use fx_nn::prelude::*;
/// let (w, g) = (Tensor::ones(2)?, Tensor::ones(2)?);
/// let zeros = Tensor::zeros(2)?;
/// let found = fused_adam(&w, &g, &zeros, &zeros, 0.1, 1.0, 0.9, 0.999, 1e-8, 0.0, true, None, None)?;
/// let (w, ..): (Tensor, Tensor, Tensor) = FromValue::from_value(found)?;
/// assert!((w.to_vec()?[0] - 0.9).abs() < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes differ.
#[wrap(path = "fx_nn::optim::fused_adam")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn fused_adam(
    parameter: &Tensor,
    gradient: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    lr: impl Into<Float>,
    step: impl Into<Float>,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    is_decoupled: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<Value> {
    adam_of(
        parameter,
        gradient,
        [exp_avg, exp_avg_sq],
        lr,
        step,
        [beta1, beta2, eps, weight_decay],
        is_decoupled,
        grad_scale,
        found_inf,
    )
}

#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
fn adam_of(
    parameter: &Tensor,
    gradient: &Tensor,
    [exp_avg, exp_avg_sq]: [&Tensor; 2],
    lr: Float,
    step: Float,
    [beta1, beta2, eps, weight_decay]: [f64; 4],
    is_decoupled: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<Value> {
    let mut gradient = scaled(gradient, grad_scale)?;
    let mut decayed = parameter.clone();
    if weight_decay != 0.0 {
        match is_decoupled {
            true => decayed = (decayed * (1.0 - (lr * weight_decay)?)?)?,
            false => gradient = (gradient + (parameter * weight_decay)?)?,
        }
    }
    let first = ((exp_avg * beta1)? + (&gradient * (1.0 - beta1))?)?;
    let second = ((exp_avg_sq * beta2)? + (gradient.square()? * (1.0 - beta2))?)?;
    let left = |beta: f64| 1.0 - Float::from(beta).pow(step)?;
    let scale = ((second.sqrt()? / left(beta2)?.pow(0.5)?)? + eps)?;
    let change = ((&first / scale)? * (lr / left(beta1)?)?)?;
    let found = [(decayed - change)?, first, second];
    kept(found.into(), [parameter, exp_avg, exp_avg_sq], found_inf)
}

/// One step of SGD, on values: the parameter, and the momentum if there is one.
///
/// # Errors
/// Returns an error if the shapes differ.
#[wrap(path = "fx_nn::optim::fused_sgd")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
pub fn fused_sgd(
    parameter: &Tensor,
    gradient: &Tensor,
    momentum_buffer: Option<&Tensor>,
    lr: impl Into<Float>,
    step: impl Into<Float>,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<Value> {
    sgd_of(
        parameter,
        gradient,
        momentum_buffer,
        lr,
        step,
        [momentum, dampening, weight_decay],
        nesterov,
        grad_scale,
        found_inf,
    )
}

#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
fn sgd_of(
    parameter: &Tensor,
    gradient: &Tensor,
    momentum_buffer: Option<&Tensor>,
    lr: Float,
    step: Float,
    [momentum, dampening, weight_decay]: [f64; 3],
    nesterov: bool,
    grad_scale: Option<&Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<Value> {
    let mut gradient = scaled(gradient, grad_scale)?;
    if weight_decay != 0.0 {
        gradient = (gradient + (parameter * weight_decay)?)?;
    }
    let mut found = Vec::new();
    if let Some(buffer) = momentum_buffer {
        // The first step takes the gradient as it is: then the buffer is zero, and nothing of it is left out.
        let share = match dampening == 0.0 {
            true => Float::from(1.0),
            false => {
                let is_first = Float::from(0.0).pow((step - 1.0)?)?;
                (1.0 - ((1.0 - is_first)? * dampening)?)?
            }
        };
        let next = ((buffer * momentum)? + (&gradient * share)?)?;
        gradient = match nesterov {
            true => (gradient + (&next * momentum)?)?,
            false => next.clone(),
        };
        found.push(next);
    }
    found.insert(0, (parameter - (gradient * lr)?)?);
    let before: Vec<&Tensor> = [parameter].into_iter().chain(momentum_buffer).collect();
    kept(found, before, found_inf)
}

fn scaled(gradient: &Tensor, by: Option<&Tensor>) -> Result<Tensor> {
    match by {
        Some(by) => gradient * by,
        None => Ok(gradient.clone()),
    }
}

/// The new values, or those before where nothing is to change.
fn kept<'t>(
    found: Vec<Tensor>,
    before: impl IntoIterator<Item = &'t Tensor>,
    found_inf: Option<&Tensor>,
) -> Result<Value> {
    let found = found.into_iter().zip(before);
    let found = found.map(|(new, old)| match found_inf {
        Some(found_inf) => ops::r#where(&found_inf.gt(0.0)?, old, &new).map(IntoValue::into_value),
        None => Ok(new.into_value()),
    });
    Ok(Value::Tuple(found.collect::<Result<_>>()?))
}

function_table! { CoreSet {
    function!(fused_adam) => CoreSet::decomposed(|call| {
        let of = |name| call.arg::<Tensor>(name);
        let number = |name| call.arg::<f64>(name);
        adam_of(
            &of("parameter")?,
            &of("gradient")?,
            [&of("exp_avg")?, &of("exp_avg_sq")?],
            call.arg("lr")?,
            call.arg("step")?,
            [number("beta1")?, number("beta2")?, number("eps")?, number("weight_decay")?],
            call.arg("is_decoupled")?,
            call.arg::<Option<Tensor>>("grad_scale")?.as_ref(),
            call.arg::<Option<Tensor>>("found_inf")?.as_ref(),
        )
    }),
    function!(fused_sgd) => CoreSet::decomposed(|call| {
        let of = |name| call.arg::<Tensor>(name);
        let number = |name| call.arg::<f64>(name);
        sgd_of(
            &of("parameter")?,
            &of("gradient")?,
            call.arg::<Option<Tensor>>("momentum_buffer")?.as_ref(),
            call.arg("lr")?,
            call.arg("step")?,
            [number("momentum")?, number("dampening")?, number("weight_decay")?],
            call.arg("nesterov")?,
            call.arg::<Option<Tensor>>("grad_scale")?.as_ref(),
            call.arg::<Option<Tensor>>("found_inf")?.as_ref(),
        )
    }),
} }

/// What an update gives: what it changes, in other values.
fn changed(call: &mut RuleCall<'_>, names: &[&str]) -> Result<ValueMeta> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let meta = call.arg(name)?;
        if !meta.is_none() {
            found.push(meta.clone());
        }
    }
    Ok(ValueMeta::Tuple(found))
}

function_table! { ShapeRule {
    function!(fused_adam) => ShapeRule(|call| changed(call, &["parameter", "exp_avg", "exp_avg_sq"])),
    function!(fused_sgd) => ShapeRule(|call| changed(call, &["parameter", "momentum_buffer"])),
} }
