//! Batch normalisation and its statistics.

use candle_core::{DType, Result, Tensor, bail};

use super::dim::parameters;
use super::expand::channel;
use super::fold::{self, Fold, Reach};
use super::widen::{is_half, widened};

fn check(op: &str, x: &Tensor) -> Result<usize> {
    if x.rank() < 2 || !x.dtype().is_float() {
        bail!(
            "{op}: input {:?} of dtype {:?} must be floating point with at least 2 dimensions",
            x.dims(),
            x.dtype()
        )
    }
    Ok(x.dims()[1])
}

/// `x [n, c, ..]` as a view in which all but the channels are reduced.
fn of_channels(x: &Tensor) -> Fold {
    let dims = x.dims();
    Fold {
        outer: 1,
        lead: dims[0],
        inner: dims[1],
        tail: dims[2..].iter().product(),
    }
}

/// The mean and the unbiased variance `[c]` of each channel of `x [n, c, ..]`, half precision as `f32`.
///
/// # Errors
/// Returns an error if `x` has fewer than 2 dimensions or is not floating point.
pub fn batch_stats(x: &Tensor) -> Result<(Tensor, Tensor)> {
    check("batch_norm", x)?;
    let x = match is_half(x.dtype()) {
        true => x.to_dtype(DType::F32)?,
        false => x.clone(),
    };
    let fold = of_channels(&x);
    let divisor = fold.count() as f64 - 1.0;
    Ok((
        fold::sum(&x, fold, true)?,
        fold::variance(&x, fold, divisor, false)?,
    ))
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` for each channel of `x [n, c, ..]`.
///
/// Under `training` the mean and the biased variance are those of `x` itself, and gradients run
/// through them; otherwise they are `running_mean` and `running_var`. All four are `[c]`, and of the type of `x`, or
/// `f32` beside half precision.
///
/// # Errors
/// Returns an error if `x` has fewer than 2 dimensions or is not floating point, an option is not
/// `[c]`, a running statistic is missing outside training, or training has one value per channel.
pub fn batch_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    eps: f64,
) -> Result<Tensor> {
    let op = "batch_norm";
    let channels = check(op, x)?;
    for (name, t) in [
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ] {
        if let Some(t) = t
            && t.dims() != [channels]
        {
            bail!(
                "{op}: {name} {:?} does not fit input {:?}, it must be [{channels}]",
                t.dims(),
                x.dims()
            )
        }
    }
    parameters(op, x, &[weight, bias, running_mean, running_var])?;
    if training {
        if of_channels(x).count() == 1 {
            bail!(
                "{op}: training needs more than one value per channel, and an input of shape {:?} has 1",
                x.dims()
            )
        }
        return widened(x, (x, weight, bias), |(x, weight, bias)| {
            // PyTorch sums the rows of a matrix in their own type.
            let reach = match x.rank() {
                2 => Reach::Sum,
                _ => Reach::All,
            };
            let y = fold::standardized(&x, of_channels(&x), eps, reach)?;
            affine(y, weight.as_ref(), bias.as_ref())
        });
    }
    let (Some(mean), Some(var)) = (running_mean, running_var) else {
        bail!(
            "{op}: running_mean and running_var are needed outside training, input is {:?}",
            x.dims()
        )
    };
    widened(
        x,
        (x, mean, var, weight, bias),
        |(x, mean, var, weight, bias)| {
            let scale = var.affine(1.0, eps)?.sqrt()?.recip()?;
            if x.track_op() && (mean.track_op() || var.track_op()) {
                let centered = x.sub(&channel(op, &mean, x.dims())?)?;
                let y = centered.mul(&channel(op, &scale, x.dims())?)?;
                return affine(y, weight.as_ref(), bias.as_ref());
            }
            // Constant statistics: one scale and one shift per channel, as in PyTorch.
            let scale = match weight {
                Some(weight) => scale.mul(&weight)?,
                None => scale,
            };
            let shift = mean.mul(&scale)?;
            let shift = match bias {
                Some(bias) => bias.sub(&shift)?,
                None => shift.neg()?,
            };
            affine(x, Some(&scale), Some(&shift))
        },
    )
}

/// `x * scale + shift` by channels.
fn affine(x: Tensor, scale: Option<&Tensor>, shift: Option<&Tensor>) -> Result<Tensor> {
    let op = "batch_norm";
    let y = match scale {
        Some(scale) => x.mul(&channel(op, scale, x.dims())?)?,
        None => x,
    };
    match shift {
        Some(shift) => y.add(&channel(op, shift, y.dims())?),
        None => Ok(y),
    }
}
