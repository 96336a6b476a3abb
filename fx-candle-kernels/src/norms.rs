//! Norms of vectors and logarithms of sums of exponentials, over any set of dimensions.

use candle_core::{DType, Result, Tensor, bail};

use super::binary::sub;
use super::choice::where_cond;
use super::comparison;
use super::pointwise::{abs, but_at_zero};
use super::reduce::{max, min, sum};
use super::scale::Scale;
use super::widen::widened;

/// How many elements are reduced to one; a missing dimension counts as one.
fn count(x: &Tensor, dims: &[usize]) -> usize {
    let sizes = dims.iter().map(|d| x.dims().get(*d).copied().unwrap_or(1));
    sizes.product()
}

/// The `p`-norm over `dims` (none when empty), shaped as by [`sum`]; the gradient of a norm that is 0 is 0.
///
/// # Errors
/// Returns the errors of [`sum`], and an error if there is no element to be the largest or
/// smallest.
pub fn norm(op: &str, x: &Tensor, p: f64, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    if count(x, dims) == 0 && (p < 0.0 || p.is_infinite()) {
        bail!(
            "{op}: nothing has no largest or smallest, of shape {:?} over {dims:?}",
            x.dims()
        )
    }
    widened(x, x, |x| {
        if p.is_infinite() {
            let all = abs(&x)?;
            return match p > 0.0 {
                true => max(&all, dims, keepdim),
                false => min(&all, dims, keepdim),
            };
        }
        if p == 0.0 {
            let is_any = comparison::ne(&x.detach(), &x.zeros_like()?.detach())?;
            return sum(&is_any.to_dtype(x.dtype())?, dims, keepdim);
        }
        if p == 1.0 {
            return sum(&abs(&x)?, dims, keepdim);
        }
        if p == 2.0 {
            return but_at_zero(&sum(&x.sqr()?, dims, keepdim)?, |x| x.sqrt());
        }
        let powers = match p < 0.0 {
            true => abs(&x)?.powf(p)?,
            false => but_at_zero(&abs(&x)?, |x| x.powf(p))?,
        };
        let total = sum(&powers, dims, keepdim)?;
        match p > 0.0 {
            true => but_at_zero(&total, |x| x.powf(1.0 / p)),
            false => total.powf(1.0 / p),
        }
    })
}

/// `log(sum(exp(x)))` over `dims` (none when empty), shaped as by [`sum`], without overflow.
///
/// # Errors
/// Returns the errors of [`sum`].
pub fn log_sum_exp(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    widened(x, x, |x| {
        if count(&x, dims) == 0 || x.elem_count() == 0 {
            return sum(&x, dims, keepdim)?.exp()?.affine(0.0, 0.0)?.log();
        }
        let top = max(&x.detach(), dims, true)?;
        // An infinite maximum is not subtracted: the exponentials are 0 or infinite without it.
        let flat = top.abs()?.to_dtype(DType::F64)?;
        let is_finite = comparison::lt(&flat, &flat.ones_like()?.times(f64::INFINITY)?)?;
        let top = where_cond(&is_finite, &top, &top.zeros_like()?)?;
        let total = sum(&sub(&x, &top)?.exp()?, dims, keepdim)?.log()?;
        total.add(&top.reshape(total.dims())?)
    })
}
