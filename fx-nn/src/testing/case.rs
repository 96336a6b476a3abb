//! A case: an instance of what a rewrite looks for, run before and after it.
//!
//! Invariant: a rewrite is blamed only for what the instance itself does not refuse.

use std::borrow::Cow;
use std::collections::VecDeque;

use fx_core::trace::CallArgs;
use fx_core::value::{DType, Value};
use fx_core::{Error, GraphModule, Result};

use super::close::{Gap, Slack, gap, largest_of, leaves, map_tensors, spread, with_steps};
use super::rewrite::{Did, Instance, Rewrite};
use crate::error::Fx;
use crate::nn::replace::replace;
use crate::tensor::{Dims, Tensor};
use crate::{manual_seed, no_grad, ops};

/// How a case ended.
pub(super) enum Verdict {
    /// The graph does not run on these arguments.
    Impossible(Error),
    Refused,
    Nothing,
    /// The same, and whether gradients were compared.
    Same(bool),
    Wrong(Wrong),
}

/// A difference.
pub(super) struct Wrong {
    pub what: String,
    /// Whether it is one of gradients.
    pub gradient: bool,
    pub before: Option<Value>,
    pub after: Option<Value>,
    /// The graph after the rewrite.
    pub graph: Option<Box<GraphModule>>,
}

/// What a case is judged by.
pub(super) struct Trial<'r> {
    pub rewrite: &'r dyn Rewrite,
    pub part: usize,
    pub slack: Slack,
    pub gradients: bool,
    pub seed: u64,
}

impl Trial<'_> {
    fn run(&self, gm: &GraphModule, inputs: &[Value]) -> Result<Value> {
        // What draws random numbers draws the same ones.
        manual_seed(self.seed);
        gm.forward(CallArgs {
            args: inputs.to_vec(),
            kwargs: Vec::new(),
        })
    }

    pub fn judge(&self, instance: &Instance) -> Result<Verdict> {
        let Instance { gm, inputs, .. } = instance;
        // Statistics that a run moves are moved in place, so each run has tensors of its own.
        let before = match no_grad(|| self.run(own(gm)?.as_ref(), inputs)) {
            Ok(before) => before,
            Err(error) => return Ok(Verdict::Impossible(error)),
        };
        let mut after_gm = own(gm)?.into_owned();
        if instance.shapes {
            let call = CallArgs {
                args: inputs.clone(),
                kwargs: Vec::new(),
            };
            manual_seed(self.seed);
            no_grad(|| after_gm.propagate_shapes(call).map(drop))?;
            give_tensors(gm, &mut after_gm)?;
        }
        let wrong = |what: String| Wrong {
            what,
            gradient: false,
            before: Some(before.clone()),
            after: None,
            graph: None,
        };
        match self.rewrite.rewrite(self.part, &mut after_gm) {
            Ok(Did::Rewrote) => {}
            Ok(Did::Refused) => return Ok(Verdict::Refused),
            Ok(Did::Nothing) => return Ok(Verdict::Nothing),
            Err(error) => {
                return Ok(Verdict::Wrong(wrong(format!(
                    "it cannot be applied: {error}"
                ))));
            }
        }
        let wrong = |what: String| Wrong {
            graph: Some(Box::new(after_gm.clone())),
            ..wrong(what)
        };
        if let Err(error) = after_gm.lint() {
            return Ok(Verdict::Wrong(wrong(format!(
                "its graph is wrong: {error}"
            ))));
        }
        let after = match no_grad(|| self.run(own(&after_gm)?.as_ref(), inputs)) {
            Ok(after) => after,
            Err(error) => {
                return Ok(Verdict::Wrong(wrong(format!("the result fails: {error}"))));
            }
        };
        if let Some(what) = self.apart(instance, &before, (&after_gm, &after))? {
            return Ok(Verdict::Wrong(Wrong {
                after: Some(after),
                ..wrong(what)
            }));
        }
        if !self.gradients {
            return Ok(Verdict::Same(false));
        }
        let Ok(Some(ours)) = self.gradients_of(gm, inputs) else {
            return Ok(Verdict::Same(false));
        };
        let theirs = match self.gradients_of(&after_gm, inputs) {
            Ok(Some(theirs)) => theirs,
            // Of nothing, there is nothing to lose.
            Ok(None) if is_nothing(&ours)? => return Ok(Verdict::Same(false)),
            Ok(None) => {
                let none = "its result has no gradient".to_string();
                return Ok(Verdict::Wrong(Wrong {
                    gradient: true,
                    ..wrong(none)
                }));
            }
            Err(error) => {
                return Ok(Verdict::Wrong(wrong(format!(
                    "its gradient fails: {error}"
                ))));
            }
        };
        let size = largest_of(&leaves(&ours).0)?;
        // A slope of parts that cancel each other: those of a result over its least input.
        let least = least_input(inputs)?.max(1e-6);
        let result = largest_of(&leaves(&before).0)?;
        let parts = 64.0 * f64::EPSILON * result / least;
        let slack = Slack {
            fixed: Some((1e-6, 1e-9 * size + 1e-14 + parts)),
            ..self.slack
        };
        match gap(&ours, &theirs, slack, None)? {
            Some(gap) => Ok(Verdict::Wrong(Wrong {
                what: gap.text("its gradient"),
                gradient: true,
                before: Some(ours),
                after: Some(theirs),
                graph: Some(Box::new(after_gm)),
            })),
            None => Ok(Verdict::Same(true)),
        }
    }

    /// What differs, beyond what rounding explains.
    fn apart(
        &self,
        instance: &Instance,
        before: &Value,
        (after_gm, after): (&GraphModule, &Value),
    ) -> Result<Option<String>> {
        let of = |gap: Gap| gap.text("its result");
        let Some(first) = gap(before, after, self.slack, None)? else {
            return Ok(None);
        };
        if matches!(first, Gap::Exact(_)) || self.slack.fixed.is_some() {
            return Ok(Some(of(first)));
        }
        let (mut inputs, _) = leaves(&Value::List(instance.inputs.clone().into()));
        inputs.retain(|x| x.dtype().is_ok_and(DType::is_floating_point));
        let scale = largest_of(&inputs)?;
        let slack = Slack {
            scale,
            ..self.slack
        };
        let gm = own(&instance.gm)?;
        let spread_of = |gm: &GraphModule, result: &Value| {
            no_grad(|| spread(gm, &instance.inputs, result, self.seed))
        };
        let moved = spread_of(&gm, before)?;
        if gap(before, after, slack, Some(&moved))?.is_none() {
            return Ok(None);
        }
        let steps = spread_of(own(after_gm)?.as_ref(), after)?;
        let moved = with_steps(moved, before, &steps, scale)?;
        Ok(gap(before, after, slack, Some(&moved))?.map(of))
    }

    /// The gradients of a weighted sum of all results with respect to all inputs; none if there is
    /// nothing to differentiate.
    fn gradients_of(&self, gm: &GraphModule, inputs: &[Value]) -> Result<Option<Value>> {
        let mut variables = Vec::new();
        let mut usable = true;
        let inputs = inputs.iter().map(|value| {
            map_tensors(value, &mut |x| {
                if !x.dtype()?.is_floating_point() {
                    return Ok(x.clone());
                }
                usable &= x.dtype()? == DType::F64 && x.to_vec()?.iter().all(|n| n.is_finite());
                let variable = x.detach()?.into_parameter()?;
                variables.push(variable.clone());
                Ok(variable)
            })
        });
        let inputs = inputs.collect::<Result<Vec<Value>>>()?;
        if !usable || variables.is_empty() {
            return Ok(None);
        }
        let result = self.run(own(gm)?.as_ref(), &inputs)?;
        let mut sum: Option<Tensor> = None;
        for (at, x) in leaves(&result).0.iter().enumerate() {
            let count = x.candle()?.elem_count();
            if x.dtype()? != DType::F64 || count == 0 || !x.requires_grad()? {
                continue;
            }
            if x.to_vec()?.iter().any(|n| !n.is_finite()) {
                return Ok(None);
            }
            let weights = (0..count).map(|i| 0.5 + ((i + at) as f64 * 0.37).fract());
            let weights = Tensor::from_vec(weights.collect::<Vec<f64>>(), x.dims()?)?;
            let part = ops::sum(&(x * weights)?, Dims::All, false)?;
            sum = Some(match sum {
                Some(sum) => (sum + part)?,
                None => part,
            });
        }
        let Some(sum) = sum else { return Ok(None) };
        let variables: Vec<&Tensor> = variables.iter().collect();
        let gradients = sum.grad(&variables)?;
        let gradients = gradients.into_iter().map(Value::object);
        Ok(Some(Value::List(gradients.collect())))
    }
}

/// The least size of a number of float inputs that is not 0; at most 1.
fn least_input(inputs: &[Value]) -> Result<f64> {
    let mut least = 1.0f64;
    for x in inputs.iter().flat_map(|input| leaves(input).0) {
        if x.dtype()?.is_floating_point() {
            let sizes = x.to_vec()?.into_iter().map(f64::abs);
            least = sizes.filter(|size| *size > 0.0).fold(least, f64::min);
        }
    }
    Ok(least)
}

/// Whether no tensor of it has elements.
fn is_nothing(value: &Value) -> Result<bool> {
    for x in leaves(value).0 {
        if x.candle()?.elem_count() > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A copy with tensors of its own if it has modules: a run may move theirs.
fn own(gm: &GraphModule) -> Result<Cow<'_, GraphModule>> {
    if gm.attributes().modules.is_empty() {
        return Ok(Cow::Borrowed(gm));
    }
    let mut copy = gm.clone();
    give_tensors(gm, &mut copy)?;
    Ok(Cow::Owned(copy))
}

/// Gives a copy of a graph module the tensors of the original, as copies.
fn give_tensors(gm: &GraphModule, copy: &mut GraphModule) -> Result<()> {
    if gm.attributes().modules.is_empty() {
        return Ok(());
    }
    let mut tensors = VecDeque::new();
    replace(&mut gm.clone(), |_, x| {
        tensors.push_back(x.clone());
        Ok(Some(x.clone()))
    })?;
    replace(copy, |_, _| {
        // Both are walked in one order.
        let Some(x) = tensors.pop_front() else {
            return Ok(None);
        };
        let data = Tensor::from(x.candle()?.detach().copy().fx()?);
        let data = match x.is_bool() {
            true => data.to_dtype(DType::Bool)?,
            false => data,
        };
        Ok(Some(match x.requires_grad()? {
            true => data.into_parameter()?,
            false => data,
        }))
    })
}
