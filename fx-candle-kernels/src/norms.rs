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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, f64s, near, varied};
    use candle_core::{Device, Var};

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[3f64, -4.], [0., 1.]], &Device::Cpu)?;
        let of = |p| norm("norm", &x, p, &[1], false);
        near(&of(2.)?, &[5., 1.])?;
        near(&of(1.)?, &[7., 1.])?;
        near(&of(0.)?, &[2., 1.])?;
        near(&of(f64::INFINITY)?, &[4., 1.])?;
        near(&of(f64::NEG_INFINITY)?, &[3., 0.])?;
        near(&of(3.)?, &[91f64.cbrt(), 1.])?;
        near(&of(-1.)?, &[12. / 7., 0.])?;
        near(
            &log_sum_exp(&x.affine(0., 1000.)?, &[1], false)?,
            &[1000. + 2f64.ln(); 2],
        )?;
        let inf = Tensor::new(&[f64::NEG_INFINITY; 2], &Device::Cpu)?;
        assert_eq!(f64s(&log_sum_exp(&inf, &[0], false)?)?, [f64::NEG_INFINITY]);
        let none = Tensor::zeros(0, DType::F64, &Device::Cpu)?;
        assert_eq!(
            f64s(&log_sum_exp(&none, &[0], false)?)?,
            [f64::NEG_INFINITY]
        );
        assert!(norm("norm", &none, f64::INFINITY, &[0], false).is_err());
        near(&norm("norm", &none, 2., &[0], false)?, &[0.])
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [varied(&[2, 3, 2])?];
        for p in [-1., 0.5, 1., 2., 3., f64::INFINITY] {
            check(&x, |v| norm("norm", &v[0], p, &[0, 2], false))?;
        }
        check(&x, |v| log_sum_exp(&v[0], &[1], true))?;
        let zero = Var::new(&[0f64, 0.], &Device::Cpu)?;
        let grads = norm("norm", zero.as_tensor(), 2., &[0], false)?.backward()?;
        near(grads.get(&zero).expect("a gradient"), &[0., 0.])
    }
}
