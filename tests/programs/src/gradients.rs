//! The gradients of a weighted sum of what a program gives, with respect to its inputs.
//!
//! Invariant: every run of a program is asked for the same sum, and is asked only where that is a number.

use fx_differential::elements;
use fx_nn::prelude::*;
use fx_nn::tensor::Gradients;
use fx_nn::value::Value;
use fx_nn::{Dims, Result};

use crate::compare::{Given, Leaf, tensors};
use crate::generate::Binding;

/// A binding whose floating tensors learn.
///
/// # Errors
/// Returns an error if a tensor cannot learn.
pub(crate) fn learning((inputs, k): &Binding) -> Result<Binding> {
    let learn = |x: &Tensor| match x.dtype()?.is_floating_point() {
        true => x.detach()?.into_parameter(),
        false => Ok(x.clone()),
    };
    let [a, b, c] = inputs;
    Ok(([learn(a)?, learn(b)?, learn(c)?], *k))
}

/// The gradients of what a run of a binding gives; zeros of an input that nothing depends on.
///
/// # Errors
/// Returns an error if there is no gradient of a step.
pub(crate) fn of((inputs, _): &Binding, result: &Value) -> Result<Given> {
    let mut total: Option<Tensor> = None;
    for (at, x) in tensors(result).into_iter().enumerate() {
        if !x.dtype()?.is_floating_point() || !x.requires_grad()? {
            continue;
        }
        let numbers = x.to_vec()?;
        if numbers.iter().any(|number| !number.is_finite()) {
            continue;
        }
        let weights =
            (0..numbers.len()).map(|element| 0.5 + ((element + at) as f64 * 0.37).fract());
        let weights = Tensor::from_vec(weights.collect::<Vec<f64>>(), x.dims()?)?;
        let part = ops::sum(
            &(ops::to_dtype(&x, DType::F64)? * weights)?,
            Dims::All,
            false,
        )?;
        total = Some(match total {
            Some(total) => (total + part)?,
            None => part,
        });
    }
    let found = total.map(|total| total.backward()).transpose()?;
    let leaves = inputs.iter().map(|input| gradient(input, found.as_ref()));
    Ok(Given {
        leaves: leaves.collect::<Result<_>>()?,
        form: String::new(),
    })
}

fn gradient(input: &Tensor, found: Option<&Gradients>) -> Result<Leaf> {
    let found = found.map(|found| found.get(input)).transpose()?.flatten();
    let (shape, dtype, elements) = match found {
        Some(gradient) => elements(&gradient)?,
        None => elements(&ops::zeros_like(&input.detach()?, None)?)?,
    };
    Ok(Leaf::Tensor(shape, dtype, elements))
}

/// A number that a run with noise moves, for a backward that goes through it as if it had not been moved.
///
/// # Errors
/// Returns an error if the numbers cannot be read.
pub(crate) fn carried(x: &Tensor, moved: Tensor) -> Result<Tensor> {
    if !x.requires_grad()? {
        return Ok(moved);
    }
    let numbers = x.to_vec()?.into_iter().zip(moved.to_vec()?);
    let by = numbers.map(|(x, moved)| {
        if x.is_finite() && moved.is_finite() {
            moved - x
        } else {
            0.0
        }
    });
    let by = Tensor::from_vec(by.collect::<Vec<f64>>(), x.dims()?)?.to_dtype(x.dtype()?)?;
    x + by
}
