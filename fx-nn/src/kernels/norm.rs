//! Batch normalisation and its statistics.

use candle_core::{Result, Tensor, bail};

use super::expand::channel;
use super::reduce;

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

/// The mean and the biased variance `[c]` of each channel of `x [n, c, ..]`.
///
/// # Errors
/// When `x` has fewer than 2 dimensions or is not floating point.
pub fn batch_stats(x: &Tensor) -> Result<(Tensor, Tensor)> {
    check("batch_stats", x)?;
    let (mean, centered) = center(x)?;
    Ok((mean, variance(&centered)?))
}

fn others(x: &Tensor) -> Vec<usize> {
    (0..x.rank()).filter(|&d| d != 1).collect()
}

fn center(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let mean = reduce::mean(x, &others(x), false)?;
    let centered = x.sub(&channel("batch_norm", &mean, x.dims())?)?;
    Ok((mean, centered))
}

fn variance(centered: &Tensor) -> Result<Tensor> {
    reduce::mean(&centered.sqr()?, &others(centered), false)
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` for each channel of `x [n, c, ..]`.
///
/// Under `training` the mean and the biased variance are those of `x` itself, and gradients run
/// through them; otherwise they are `running_mean` and `running_var`. All four are `[c]`.
///
/// # Errors
/// When `x` has fewer than 2 dimensions or is not floating point, an option is not `[c]`, a
/// running statistic is missing outside training, or training has one value a channel.
pub fn batch_norm(
    x: &Tensor,
    running_mean: Option<&Tensor>,
    running_var: Option<&Tensor>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    training: bool,
    eps: f64,
) -> Result<Tensor> {
    let channels = check("batch_norm", x)?;
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
                "batch_norm: {name} {:?} does not fit input {:?}, it must be [{channels}]",
                t.dims(),
                x.dims()
            )
        }
    }
    if training {
        if x.elem_count() == channels {
            bail!(
                "batch_norm: training needs more than 1 value a channel, input is {:?}",
                x.dims()
            )
        }
        let (_, centered) = center(x)?;
        let var = variance(&centered)?;
        return scaled(&centered, &var, weight, bias, eps);
    }
    let (Some(mean), Some(var)) = (running_mean, running_var) else {
        bail!(
            "batch_norm: running_mean and running_var are needed outside training, input is {:?}",
            x.dims()
        )
    };
    normalize(x, mean, var, weight, bias, eps)
}

/// [`batch_norm`] with the statistics `mean` and `var` (both `[c]`) given.
///
/// After [`batch_stats`] this is the training pass without computing them twice; gradients run
/// through all five tensors.
///
/// # Errors
/// When `x` has fewer than 2 dimensions, is not floating point, or another tensor is not `[c]`.
pub fn normalize(
    x: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    check("batch_norm", x)?;
    if x.track_op() && (mean.track_op() || var.track_op()) {
        let centered = x.sub(&channel("batch_norm", mean, x.dims())?)?;
        return scaled(&centered, var, weight, bias, eps);
    }
    // Constant statistics: one scale and one shift a channel, as PyTorch does.
    let scale = scale_of(var, weight, eps)?;
    let shift = mean.mul(&scale)?;
    let shift = match bias {
        Some(bias) => bias.sub(&shift)?,
        None => shift.neg()?,
    };
    x.mul(&channel("batch_norm", &scale, x.dims())?)?
        .add(&channel("batch_norm", &shift, x.dims())?)
}

fn scale_of(var: &Tensor, weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
    let scale = var.affine(1.0, eps)?.sqrt()?.recip()?;
    match weight {
        Some(weight) => scale.mul(weight),
        None => Ok(scale),
    }
}

fn scaled(
    centered: &Tensor,
    var: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let scale = scale_of(var, weight, eps)?;
    let y = centered.mul(&channel("batch_norm", &scale, centered.dims())?)?;
    match bias {
        Some(bias) => y.add(&channel("batch_norm", bias, centered.dims())?),
        None => Ok(y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, f64s, near, strided, varied};
    use candle_core::{DType, Device};

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[1f64, 2.], [3., 6.]], &Device::Cpu)?;
        let (mean, var) = batch_stats(&x)?;
        near(&mean, &[2., 4.])?;
        near(&var, &[1., 4.])?;
        let y = batch_norm(&x, None, None, None, None, true, 0.)?;
        near(&y, &[-1., -1., 1., 1.])?;
        let (w, b) = (Tensor::new(&[2f64, 3.], &Device::Cpu)?, mean.clone());
        let y = batch_norm(&x, Some(&b), Some(&var), Some(&w), Some(&b), false, 0.)?;
        near(&y, &[0., 1., 4., 7.])?;
        let y = normalize(&strided(&x)?, &mean, &var, None, None, 0.)?;
        near(&y, &[-1., -1., 1., 1.])
    }

    #[test]
    fn single_precision_is_close() -> Result<()> {
        let x = varied(&[2, 3, 4, 5])?;
        let (m, v) = (varied(&[3])?, varied(&[3])?.sqr()?);
        let want = f64s(&batch_norm(
            &x,
            Some(&m),
            Some(&v),
            None,
            None,
            false,
            1e-5,
        )?)?;
        let single = |t: &Tensor| t.to_dtype(DType::F32);
        let (m, v) = (single(&m)?, single(&v)?);
        let got = batch_norm(&single(&x)?, Some(&m), Some(&v), None, None, false, 1e-5)?;
        for (g, w) in f64s(&got)?.iter().zip(want) {
            assert!((g - w).abs() < 1e-5 * (1. + w.abs()));
        }
        Ok(())
    }

    #[test]
    fn errors() -> Result<()> {
        let x = varied(&[2, 3, 2])?;
        let two = varied(&[2])?;
        let text = batch_norm(&x, None, None, Some(&two), None, true, 0.)
            .unwrap_err()
            .to_string();
        assert!(text.contains("batch_norm: weight [2]"), "{text}");
        assert!(batch_norm(&x, None, None, None, None, false, 0.).is_err());
        assert!(batch_norm(&varied(&[1, 3])?, None, None, None, None, true, 0.).is_err());
        assert!(batch_stats(&two).is_err());
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let (w, b) = (varied(&[3])?, varied(&[3])?.affine(2., 0.1)?);
        let (m, v) = (b.clone(), varied(&[3])?.sqr()?);
        for x in [varied(&[4, 3])?, strided(&varied(&[2, 3, 2, 3])?)?] {
            let inputs = [x, w.clone(), b.clone()];
            check(&inputs, |t| {
                batch_norm(&t[0], None, None, Some(&t[1]), Some(&t[2]), true, 1e-3)
            })?;
            check(&inputs, |t| {
                let (mean, var) = batch_stats(&t[0])?;
                normalize(&t[0], &mean, &var, Some(&t[1]), Some(&t[2]), 1e-3)
            })?;
            check(&inputs, |t| {
                batch_norm(
                    &t[0],
                    Some(&m),
                    Some(&v),
                    Some(&t[1]),
                    Some(&t[2]),
                    false,
                    1e-3,
                )
            })?;
        }
        Ok(())
    }
}
