//! Norms of batches as programs have them, in training and in evaluation.
//!
//! Invariant: the statistics that running ones move towards are the batch's, with the unbiased variance.

use fx_nn::Result;
use fx_nn::prelude::*;

use super::entry::{Entry, by, rank};
use crate::call::Call;

/// What a norm gives.
pub(crate) struct Normed {
    pub y: Tensor,
    /// Of the batch: the mean, and one over the root of the variance.
    pub mean: Tensor,
    pub scale: Tensor,
    pub running_mean: Tensor,
    pub running_var: Tensor,
}

/// A norm in training, with running statistics.
///
/// # Errors
/// Returns an error if the arguments do not fit.
pub(crate) fn norm(call: &Call<'_>) -> Result<Normed> {
    let x = call.own()?;
    let instance = call.target.contains("instance_norm");
    let (momentum, eps): (f64, f64) = (call.of("momentum")?, call.of("eps")?);
    let (weight, bias) = (
        call.maybe::<Tensor>("weight")?,
        call.maybe::<Tensor>("bias")?,
    );
    // Of an instance norm, each image has statistics of its own.
    let first = if instance { 2 } else { 0 };
    let dims: Vec<i64> = (first..rank(&x)?).filter(|dim| *dim != 1).collect();
    let mean = ops::mean(&x, dims.clone(), false)?;
    let var = ops::var(&x, dims.clone(), false, false)?;
    let unbiased = ops::var(&x, dims, true, false)?;
    let y = match instance {
        true => ops::instance_norm(
            &x,
            None,
            None,
            weight.as_ref(),
            bias.as_ref(),
            true,
            momentum,
            eps,
        )?,
        false => ops::batch_norm(
            &x,
            Some(&mean),
            Some(&var),
            weight.as_ref(),
            bias.as_ref(),
            false,
            momentum,
            eps,
        )?,
    };
    let moved = |name: &str, batch: &Tensor| -> Result<Tensor> {
        let running: Tensor = call.of(name)?;
        let batch = match instance {
            true => ops::mean(batch, 0, false)?,
            false => batch.clone(),
        };
        (&running * (1.0 - momentum))? + (&batch * momentum)?
    };
    Ok(Normed {
        y,
        running_mean: moved("running_mean", &mean)?,
        running_var: moved("running_var", &unbiased)?,
        scale: ops::rsqrt(&(var + eps)?)?,
        mean,
    })
}

fn values<const N: usize>(all: [Tensor; N]) -> Value {
    Value::Tuple(all.map(Value::object).into_iter().collect())
}

/// By running statistics; with none of the batch.
fn by_running(call: &Call<'_>) -> Result<Tensor> {
    let optional = |name: &str| call.maybe::<Tensor>(name);
    let (mean, var) = (optional("running_mean")?, optional("running_var")?);
    let (weight, bias) = (optional("weight")?, optional("bias")?);
    ops::batch_norm(
        &call.own()?,
        mean.as_ref(),
        var.as_ref(),
        weight.as_ref(),
        bias.as_ref(),
        false,
        call.of("momentum")?,
        call.of("eps")?,
    )
}

/// Nothing: what evaluation has in place of the statistics of a batch.
fn nothing(call: &Call<'_>) -> Result<Tensor> {
    ops::new_zeros(&call.own()?, vec![0i64], None)
}

fn functional(call: &Call<'_>) -> Result<Value> {
    if !call.or("training", false)? {
        let (y, none) = (by_running(call)?, nothing(call)?);
        let (mean, var) = (call.of("running_mean")?, call.of("running_var")?);
        return Ok(values([y, none.clone(), none, mean, var]));
    }
    let n = norm(call)?;
    Ok(values([
        n.y,
        n.mean,
        n.scale,
        n.running_mean,
        n.running_var,
    ]))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten._native_batch_norm_legit_functional" => functional,
};
