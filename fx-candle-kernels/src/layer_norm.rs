//! Normalisation of each sample by its own statistics: layer, group and root-mean-square norm.

use candle_core::{Result, Tensor, bail};

use super::dim::parameters;
use super::expand;
use super::fold::{self, Fold, Reach};
use super::widen::widened;
use crate::dtype::dtype_name;

/// `x [.., shape]` as a view in which the last dims are reduced.
fn rows(op: &str, x: &Tensor, shape: &[usize], held: &[Option<&Tensor>]) -> Result<Fold> {
    float(op, x)?;
    if shape.is_empty() || !x.dims().ends_with(shape) {
        bail!(
            "{op}: the last dims of input {:?} must be the normalized shape {shape:?}",
            x.dims()
        )
    }
    for held in held.iter().flatten() {
        if held.dims() != shape {
            bail!(
                "{op}: weight or bias {:?} must have shape {shape:?}",
                held.dims()
            )
        }
    }
    let tail: usize = shape.iter().product();
    Ok(one_row_each(x, tail))
}

fn float(op: &str, x: &Tensor) -> Result<()> {
    if !x.dtype().is_float() {
        bail!(
            "{op}: input {:?} of dtype {} must be floating point",
            x.dims(),
            dtype_name(x.dtype())
        )
    }
    Ok(())
}

fn one_row_each(x: &Tensor, tail: usize) -> Fold {
    Fold {
        outer: 1,
        lead: 1,
        inner: x.elem_count().checked_div(tail).unwrap_or(0),
        tail,
    }
}

fn affine(y: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
    let y = match weight {
        Some(weight) => y.mul(&expand::to(weight, y.dims())?)?,
        None => y,
    };
    match bias {
        Some(bias) => y.add(&expand::to(bias, y.dims())?),
        None => Ok(y),
    }
}

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last dims, which are `shape`.
///
/// # Errors
/// Returns an error if the last dims of `x`, `weight` or `bias` are not `shape`, or `x` is not
/// floating point.
pub fn layer_norm(
    x: &Tensor,
    shape: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let op = "layer_norm";
    let fold = rows(op, x, shape, &[weight, bias])?;
    parameters(op, x, &[weight, bias])?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, (x, weight, bias), |(x, weight, bias)| {
        let y = fold::standardized(&x, fold, eps, Reach::Squares)?;
        affine(y, weight.as_ref(), bias.as_ref())
    })
}

/// `x / sqrt(mean(x²) + eps) * weight` over the last dims, which are `shape`; the result is of the type of `x`.
///
/// # Errors
/// Returns the errors of [`layer_norm`].
pub fn rms_norm(x: &Tensor, shape: &[usize], weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
    let op = "rms_norm";
    let fold = rows(op, x, shape, &[weight])?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, (x, weight), |(x, weight)| {
        let flat = x.contiguous()?.reshape((fold.inner, fold.tail))?;
        let square = fold::sum(&flat.sqr()?, fold, true)?;
        let scale = square.affine(1.0, eps)?.sqrt()?.recip()?.unsqueeze(1)?;
        let y = flat.mul(&scale.broadcast_as(flat.dims())?)?;
        let weight = weight.map(|w| w.to_dtype(x.dtype())).transpose()?;
        affine(y.reshape(x.dims())?, weight.as_ref(), None)
    })
}

/// Layer norm over each of `groups` groups of the channels of `x [n, c, ..]`, then `weight` and `bias` `[c]`.
///
/// # Errors
/// Returns an error if `groups` does not divide the channels, there is one value to normalize, or
/// `weight` or `bias` is not `[c]`.
pub fn group_norm(
    x: &Tensor,
    groups: usize,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let op = "group_norm";
    let &[n, c, ref image @ ..] = x.dims() else {
        bail!("{op}: input {:?} must be [n, c, ..]", x.dims())
    };
    float(op, x)?;
    if c == 0 || image.contains(&0) {
        bail!(
            "{op}: input {:?} has no channels or an empty image",
            x.dims()
        )
    }
    if groups == 0 || !c.is_multiple_of(groups) {
        bail!(
            "{op}: input {:?} has {c} channels, which {groups} groups do not divide",
            x.dims()
        )
    }
    for held in [weight, bias].into_iter().flatten() {
        if held.dims() != [c] {
            bail!(
                "{op}: input {:?} has {c} channels, weight and bias {:?} are for others",
                x.dims(),
                held.dims()
            )
        }
    }
    parameters(op, x, &[weight, bias])?;
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    if x.elem_count() == groups {
        bail!(
            "{op}: {groups} groups of input {:?} have one value to normalize",
            x.dims()
        )
    }
    let fold = one_row_each(x, x.elem_count() / (n * groups));
    let mut shape = vec![1; x.rank()];
    shape[1] = c;
    let channels = |t: Option<Tensor>| t.map(|t| t.reshape(shape.as_slice())).transpose();
    widened(x, (x, weight, bias), |(x, weight, bias)| {
        let y = fold::standardized(&x, fold, eps, Reach::Squares)?;
        affine(y, channels(weight)?.as_ref(), channels(bias)?.as_ref())
    })
}
