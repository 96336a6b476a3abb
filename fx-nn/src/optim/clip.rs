//! Clipping of gradients: all by their common norm, or each by its size.

use candle_core::{DType, Tensor as Candle, Var};
use fx_core::Result;
use fx_core::module::Component;

use crate::error::Fx;
use crate::kernels::reduce::Side;
use crate::nn::variables;
use crate::tensor::Gradients;

/// Scales the gradients of a module's parameters so that their norm, taken as one vector, is at
/// most `max_norm`; returns the norm before. `norm_type` is 2.0 for the Euclidean norm,
/// [`f64::INFINITY`] for the largest size.
///
/// ```
/// use fx_nn::optim::clip_grad_norm;
/// use fx_nn::prelude::*;
/// #[derive(Module)]
/// struct Point { w: Tensor }
/// let model = Point { w: Tensor::from_vec(vec![1.5f32, 2.0], 2)?.into_parameter()? };
/// let mut gradients = model.w.square()?.sum(..)?.backward()?;
/// assert_eq!(clip_grad_norm(&model, &mut gradients, 1.0, 2.0)?, 5.0);
/// let clipped = gradients.get(&model.w)?.ok_or_else(|| Error::msg("it has one"))?.to_vec()?;
/// assert!((clipped[0] - 0.6).abs() < 1e-6 && (clipped[1] - 0.8).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns an error if a parameter is symbolic.
pub fn clip_grad_norm(
    module: &(impl Component + ?Sized),
    gradients: &mut Gradients,
    max_norm: f64,
    norm_type: f64,
) -> Result<f64> {
    let variables = variables(module)?;
    let mut norms = Vec::new();
    for var in &variables {
        if let Some(gradient) = gradients.candle().get(var) {
            norms.push(norm(gradient, norm_type).fx()?);
        }
    }
    let total = match norm_type {
        f64::INFINITY => norms
            .iter()
            .fold(0.0, |most: f64, norm| match norm.is_nan() {
                true => f64::NAN,
                false => most.max(*norm),
            }),
        p => norms
            .iter()
            .map(|norm| norm.powf(p))
            .sum::<f64>()
            .powf(1.0 / p),
    };
    // As in PyTorch: a small constant, so that no norm divides by zero.
    let scale = max_norm / (total + 1e-6);
    if scale < 1.0 || scale.is_nan() {
        change(&variables, gradients, |gradient| gradient * scale)?;
    }
    Ok(total)
}

/// Clamps every element of the gradients of a module's parameters to `-clip_value` to `clip_value`.
///
/// # Errors
/// Returns an error if a parameter is symbolic.
pub fn clip_grad_value(
    module: &(impl Component + ?Sized),
    gradients: &mut Gradients,
    clip_value: f64,
) -> Result<()> {
    change(&variables(module)?, gradients, |gradient| {
        gradient.clamp(-clip_value, clip_value)
    })
}

fn norm(gradient: &Candle, p: f64) -> candle_core::Result<f64> {
    let sizes = gradient
        .detach()
        .abs()?
        .to_dtype(DType::F64)?
        .flatten_all()?;
    if sizes.elem_count() == 0 {
        return Ok(0.0);
    }
    if p == f64::INFINITY {
        return Side::Max.values(&sizes, 0)?.reshape(())?.to_scalar();
    }
    let powers = if p == 2.0 {
        sizes.sqr()?
    } else {
        sizes.powf(p)?
    };
    Ok(powers.sum_all()?.to_scalar::<f64>()?.powf(1.0 / p))
}

fn change(
    variables: &[Var],
    gradients: &mut Gradients,
    changed: impl Fn(&Candle) -> candle_core::Result<Candle>,
) -> Result<()> {
    for var in variables {
        if let Some(gradient) = gradients.candle().get(var) {
            let gradient = changed(&gradient.detach()).fx()?;
            gradients.candle_mut().insert(var, gradient);
        }
    }
    Ok(())
}
