//! Softmax and its logarithm, stable for values of any size.

use candle_core::{Result, Tensor, bail};

use super::reduce::{self, Side};
use super::widen::widened;
use crate::dtype::dtype_name;

/// Runs `f` on `x` as contiguous rows along `dim`.
fn on_rows(
    op: &str,
    x: &Tensor,
    dim: usize,
    f: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if !x.dtype().is_float() {
        bail!(
            "{op}: dtype {} is not floating point",
            dtype_name(x.dtype())
        )
    }
    if dim >= x.rank().max(1) {
        bail!("{op}: dim {dim} is out of range for shape {:?}", x.dims())
    }
    if x.elem_count() == 0 {
        return Ok(x.clone());
    }
    widened(x, x, |x| {
        if x.rank() == 0 {
            return f(&x.reshape((1, 1))?)?.reshape(());
        }
        let last = x.rank() - 1;
        let y = f(&x.transpose(dim, last)?.contiguous()?)?;
        y.transpose(dim, last)?.contiguous()
    })
}

/// The sum of each row.
fn total(x: &Tensor) -> Result<Tensor> {
    reduce::sum(x, &[x.rank() - 1], true)
}

/// `x` less the largest value of each row, which no gradient runs through.
fn shifted(x: &Tensor) -> Result<Tensor> {
    let top = Side::Max.values(&x.detach(), x.rank() - 1)?;
    x.sub(&top.broadcast_as(x.dims())?)
}

/// `exp(x)` divided by its sum along `dim`; the shape is that of `x`.
///
/// # Errors
/// Returns an error if `dim` is not a dimension of `x` or the dtype is not floating point.
pub fn softmax(x: &Tensor, dim: usize) -> Result<Tensor> {
    on_rows("softmax", x, dim, |x| {
        let e = shifted(x)?.exp()?;
        let total = total(&e)?;
        e.div(&total.broadcast_as(x.dims())?)
    })
}

/// The logarithm of [`softmax`], without its rounding to 0; the shape is that of `x`.
///
/// # Errors
/// Returns an error if `dim` is not a dimension of `x` or the dtype is not floating point.
pub fn log_softmax(x: &Tensor, dim: usize) -> Result<Tensor> {
    on_rows("log_softmax", x, dim, |x| {
        let x = shifted(x)?;
        let total = total(&x.exp()?)?.log()?;
        x.sub(&total.broadcast_as(x.dims())?)
    })
}
