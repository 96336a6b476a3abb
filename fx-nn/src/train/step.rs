//! `StepGraph`: a training step as a function, and the graph of it.
//!
//! Invariant: the graph writes nothing; parameters, state and buffers are arguments and results.

use fx_core::ir::ParamSpec;
use fx_core::shapes::Spec;
use fx_core::trace::{FromValue, TraceContext};
use fx_core::value::{DType, Float, IntoValue, Tree, Value};
use fx_core::{Error, Result};

use super::loss::{Loss, dict, tree, values};
use super::loss_scale::{self, LossScale, Scaling};
use crate::func::grad::Grad;
use crate::func::known;
use crate::func::source::Source;
use crate::func::transform::{Graphs, transform};
use crate::ops;
use crate::optim::{UpdateRule, Updated};
use crate::tensor::Tensor;

/// A training step: a function of the inputs, the learning rate, the number of the step, the parameters, the state of
/// the optimizer and the buffers. It gives the loss, and the parameters, the state and the buffers after the step.
#[derive(Clone)]
pub(super) struct StepGraph {
    source: Source,
    pub loss: Loss,
    pub rule: UpdateRule,
    pub options: Options,
    params: Vec<ParamSpec>,
    trees: Vec<Tree>,
    graphs: Graphs,
}

/// What a step does beside the update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Options {
    /// The largest norm of all gradients.
    pub clip: Option<f64>,
    /// Into how many parts a batch is cut.
    pub parts: usize,
    /// By what the loss is multiplied.
    pub scale: Option<LossScale>,
}

transform! { StepGraph, "training step", |step| &step.params }

/// How many arguments there are behind the inputs.
const BEHIND: usize = 5;

impl StepGraph {
    pub fn new(loss: Loss, rule: UpdateRule, options: Options) -> Self {
        let (inputs, trees) = loss.inputs();
        let (mut params, mut trees) = (inputs.to_vec(), trees.to_vec());
        let state = state_of(&loss, rule, options.scale);
        let behind = [
            ("lr", Tree::Leaf),
            ("step", Tree::Leaf),
            ("parameters", tree(&loss.parameters)),
            ("state", tree(&state)),
            ("buffers", tree(&loss.buffers)),
        ];
        for (name, tree) in behind {
            params.push(ParamSpec::of_text(name.to_string(), "Value"));
            trees.push(tree);
        }
        StepGraph {
            source: Source::Recorder(fx_core::trace::Recorder::duplicate(&loss)),
            loss,
            rule,
            options,
            params,
            trees,
            graphs: Graphs::default(),
        }
    }

    /// The names of the inputs.
    pub fn inputs(&self) -> &[ParamSpec] {
        &self.params[..self.params.len() - BEHIND]
    }

    /// The specs of all arguments, for inputs like these.
    pub fn specs(&self, inputs: &[Spec]) -> Vec<Spec> {
        let of = |named: &[(String, Value)]| {
            Spec::dict(
                named
                    .iter()
                    .map(|(path, value)| (path.as_str(), Spec::of(value.clone()))),
            )
        };
        let mut specs = inputs.to_vec();
        specs.extend([Spec::float(), Spec::float()]);
        specs.push(of(&self.loss.parameters));
        specs.push(of(&self.state()));
        specs.push(of(&self.loss.buffers));
        specs
    }

    /// What is like the state, by name.
    pub fn state(&self) -> Vec<(String, Value)> {
        state_of(&self.loss, self.rule, self.options.scale)
    }

    fn recorded(&self, cx: &TraceContext, args: &[Value]) -> Result<Value> {
        let Some((inputs, [lr, step, parameters, state, buffers])) =
            args.split_last_chunk::<BEHIND>()
        else {
            return Err(Error::msg("an argument of the training step is missing"));
        };
        let (lr, step) = (
            Float::from_value(lr.clone())?,
            Float::from_value(step.clone())?,
        );
        let of = Grad::of_source(self.source.clone(), true).wrt(0).has_aux();
        let mut total: Option<(Tensor, Vec<Tensor>)> = None;
        let state = values(state)?;
        let of_parameters = self.loss.parameters.len() * self.rule.state().len();
        let scaling = match self.options.scale {
            Some(scale) => Some(scale.of(&state[of_parameters..])?),
            None => None,
        };
        let seed = scaling.as_ref().map(|scaling| &scaling.scale);
        let before = buffers;
        let mut buffers = buffers.clone();
        for part in 0..self.options.parts {
            let mut args = vec![parameters.clone(), buffers];
            for input in inputs {
                args.push(part_of(input, part, self.options.parts)?);
            }
            let found = of.recorded_from(cx, &args, seed)?;
            let [loss, aux, grads] = parts_of(&found)?;
            buffers = aux;
            let loss = Tensor::from_value(loss)?;
            let grads = values(&grads)?.into_iter().map(Tensor::from_value);
            let grads = grads.collect::<Result<Vec<_>>>()?;
            total = Some(match total {
                None => (loss, grads),
                Some((sum, sums)) => {
                    let pairs = sums.into_iter().zip(grads);
                    let sums = pairs.map(|(sum, grad)| sum + grad);
                    ((sum + loss)?, sums.collect::<Result<_>>()?)
                }
            });
        }
        let (mut loss, grads) = total.ok_or_else(|| Error::msg("a batch has one part or more"))?;
        let mut scale = None;
        if self.options.parts > 1 {
            let share = 1.0 / self.options.parts as f64;
            loss = (loss * share)?;
            scale = Some(ops::full_like(&loss, share, None)?);
        }
        let found_inf = match &scaling {
            Some(scaling) => {
                let back = ops::reciprocal(&scaling.scale)?;
                scale = Some(match scale {
                    Some(scale) => (scale * back)?,
                    None => back,
                });
                Some(scaling.found_inf(&grads)?)
            }
            None => None,
        };
        if let Some(largest) = self.options.clip {
            let norm = norm_of(&grads)?;
            let norm = match &scale {
                Some(scale) => (norm * scale)?,
                None => norm,
            };
            // As in PyTorch: a small constant, so that no norm divides by zero.
            let factor = (ops::reciprocal(&(norm + 1e-6)?)? * largest)?;
            let factor = ops::clamp(&factor, None, Some(1.0))?;
            scale = Some(match scale {
                Some(scale) => (scale * factor)?,
                None => factor,
            });
        }
        let paths: Vec<&String> = self.loss.parameters.iter().map(|(path, _)| path).collect();
        let names = self.rule.state();
        let mut state = state.into_iter().map(Tensor::from_value);
        let mut after = Vec::with_capacity(paths.len());
        let mut state_after = Vec::with_capacity(paths.len() * names.len());
        for (parameter, gradient) in values(parameters)?.into_iter().zip(&grads) {
            let own = state
                .by_ref()
                .take(names.len())
                .collect::<Result<Vec<_>>>()?;
            let mut found = self.rule.apply(&Updated {
                parameter: &Tensor::from_value(parameter)?,
                gradient,
                state: &own,
                lr,
                step,
                grad_scale: scale.as_ref(),
                found_inf: found_inf.as_ref(),
            })?;
            state_after.extend(found.split_off(1).into_iter().map(IntoValue::into_value));
            after.extend(found.into_iter().map(IntoValue::into_value));
        }
        if let (Some(scaling), Some(found_inf)) = (&scaling, &found_inf) {
            state_after.extend(scaling.after(found_inf)?);
            let pairs = values(before)?.into_iter().zip(values(&buffers)?);
            let chosen = pairs.map(|(old, new)| Scaling::chosen(found_inf, &old, &new));
            let paths = self.loss.buffers.iter().map(|(path, _)| path);
            buffers = dict(paths, chosen.collect::<Result<Vec<_>>>()?);
        }
        Ok(Value::Tuple(
            vec![
                loss.into_value(),
                dict(paths, after),
                dict(self.state().iter().map(|(path, _)| path), state_after),
                buffers,
            ]
            .into(),
        ))
    }
}

/// What is like the state of a step: that of the optimizer for each parameter, by `path.name`, and that of the loss scale.
fn state_of(loss: &Loss, rule: UpdateRule, scale: Option<LossScale>) -> Vec<(String, Value)> {
    let each = loss.parameters.iter().flat_map(|(path, value)| {
        let names = rule.state().iter();
        names.map(move |name| (format!("{path}.{name}"), value.clone()))
    });
    let initial = scale
        .and_then(|scale| scale.initial().ok())
        .unwrap_or_default();
    let names = loss_scale::STATE
        .iter()
        .map(|name| format!("loss_scale.{name}"));
    each.chain(names.zip(initial)).collect()
}

/// The loss, the buffers and the gradients.
fn parts_of(found: &Value) -> Result<[Value; 3]> {
    if let Value::Tuple(items) = found
        && let [Value::Tuple(first), grads] = &items[..]
        && let [loss, aux] = &first[..]
    {
        return Ok([loss.clone(), aux.clone(), grads.clone()]);
    }
    Err(Error::expected(
        "a loss and its gradients",
        found.describe(),
    ))
}

/// One part of the examples of an input.
fn part_of(input: &Value, part: usize, parts: usize) -> Result<Value> {
    if parts == 1 {
        return Ok(input.clone());
    }
    let tree = Tree::of(input)?;
    let leaves = tree.flatten(input.clone())?.into_iter().map(|leaf| {
        let Ok(x) = Tensor::from_value(leaf.clone()) else {
            return Ok(leaf);
        };
        let Some(size) = known::dims(&x)?.first().and_then(|dim| dim.as_known()) else {
            return Err(Error::msg(
                "a batch that is cut into parts has a number of examples",
            ));
        };
        if size % parts != 0 {
            return Err(Error::msg(format_args!(
                "a batch of {size} examples cannot be cut into {parts} equal parts"
            )));
        }
        let size = (size / parts) as i64;
        ops::narrow(&x, 0, part as i64 * size, size).map(IntoValue::into_value)
    });
    tree.unflatten(leaves.collect::<Result<_>>()?)
}

/// The norm of all gradients, taken as one vector.
fn norm_of(grads: &[Tensor]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for grad in grads {
        let own = ops::sum(&(grad * grad)?, crate::tensor::Dims::All, false)?;
        let own = match known::dtype(&own)? {
            DType::F64 => own,
            _ => ops::to_dtype(&own, DType::F32)?,
        };
        sum = Some(match sum {
            Some(sum) => (sum + own)?,
            None => own,
        });
    }
    let sum = sum.ok_or_else(|| Error::msg("there are no gradients"))?;
    ops::sqrt(&sum)
}
