//! Reductions over any set of dimensions.

use candle_core::{DType, Result, Tensor, bail};
use fx_kernels::reduce::Reduction;

use super::choice::where_cond;
use super::comparison;
use super::first_place;
use super::fold::{self, Fold};
use super::gradient;
use super::widen::widened;
use crate::dtype::dtype_name;

/// Whether a floating point `x` of any shape holds a NaN.
///
/// # Errors
/// Returns only candle's errors.
pub fn has_nan(x: &Tensor) -> Result<bool> {
    if !x.dtype().is_float() || x.elem_count() == 0 {
        return Ok(false);
    }
    let x = x.detach().contiguous()?;
    // A sum is much faster than a comparison, and is NaN if one element is.
    let total = x.sum_all()?.to_dtype(DType::F64)?.to_scalar::<f64>()?;
    if !total.is_nan() {
        return Ok(false);
    }
    // Infinities of both signs also sum to NaN.
    any(&comparison::ne(&x, &x)?)
}

/// Whether an element of truth values (`u8`) is not 0.
///
/// # Errors
/// Returns only candle's errors.
pub fn any(mask: &Tensor) -> Result<bool> {
    Ok(mask.elem_count() > 0 && one_extreme(mask, Side::Max)? != 0)
}

/// Whether no element of truth values (`u8`) is 0.
///
/// # Errors
/// Returns only candle's errors.
pub fn all(mask: &Tensor) -> Result<bool> {
    Ok(mask.elem_count() == 0 || one_extreme(mask, Side::Min)? != 0)
}

fn one_extreme(mask: &Tensor, side: Side) -> Result<u8> {
    let found = side.values(&mask.detach().flatten_all()?, 0)?;
    found.reshape(())?.to_scalar()
}

/// Sorted, distinct `dims`, all below the rank of `x`.
fn valid(op: &str, x: &Tensor, dims: &[usize]) -> Result<Vec<usize>> {
    let mut dims = dims.to_vec();
    dims.sort_unstable();
    if dims.windows(2).any(|w| w[0] == w[1]) {
        bail!("{op}: dims {dims:?} name a dimension twice")
    }
    if let Some(d) = dims.iter().find(|&&d| d >= x.rank()) {
        bail!("{op}: dim {d} is out of range for shape {:?}", x.dims())
    }
    Ok(dims)
}

fn without(x: &Tensor, dims: &[usize], keepdim: bool) -> Vec<usize> {
    let all = x.dims().iter().enumerate();
    if keepdim {
        all.map(|(i, &n)| if dims.contains(&i) { 1 } else { n })
            .collect()
    } else {
        all.filter(|(i, _)| !dims.contains(i))
            .map(|(_, &n)| n)
            .collect()
    }
}

/// Runs `kernel` on a contiguous `x` and its view with `dims` reduced; the result is shaped as by [`sum`].
fn folded(
    x: &Tensor,
    dims: &[usize],
    keepdim: bool,
    kernel: impl FnOnce(&Tensor, Fold) -> Result<Tensor>,
) -> Result<Tensor> {
    let shape = without(x, dims, keepdim);
    let y = match Fold::of(x.dims(), dims) {
        Some(fold) => kernel(x, fold)?,
        None => {
            // The reduced dimensions come last.
            let mut order: Vec<usize> = (0..x.rank()).filter(|d| !dims.contains(d)).collect();
            let inner = order.iter().map(|&d| x.dims()[d]).product();
            order.extend(dims);
            let fold = Fold {
                outer: 1,
                lead: 1,
                inner,
                tail: dims.iter().map(|&d| x.dims()[d]).product(),
            };
            kernel(&x.permute(order)?, fold)?
        }
    };
    y.reshape(shape)
}

fn float(op: &str, x: &Tensor) -> Result<()> {
    if !x.dtype().is_float() {
        bail!(
            "{op}: dtype {} of shape {:?} is not floating point",
            dtype_name(x.dtype()),
            x.dims()
        )
    }
    Ok(())
}

/// The sum over `dims` (none when empty); integers are summed as `i64` and wrap around.
///
/// The result drops the dimensions `dims`, or keeps them with size 1 under `keepdim`.
///
/// # Errors
/// Returns an error if `dims` repeats a dimension or names one that `x` lacks.
pub fn sum(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    let dims = valid("sum", x, dims)?;
    if x.dtype().is_int() {
        let x = x.to_dtype(DType::I64)?;
        return folded(&x, &dims, keepdim, |x, fold| fold::sum(x, fold, false));
    }
    widened(x, x, |x| {
        folded(&x, &dims, keepdim, |x, fold| fold::sum(x, fold, false))
    })
}

/// The mean over `dims` (none when empty), shaped as by [`sum`]; NaN over no elements.
///
/// # Errors
/// Returns the errors of [`sum`], and an error if the dtype is not floating point.
pub fn mean(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    float("mean", x)?;
    let dims = valid("mean", x, dims)?;
    widened(x, x, |x| {
        folded(&x, &dims, keepdim, |x, fold| fold::sum(x, fold, true))
    })
}

/// How far values lie from their mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// The squared distances over their count.
    Var,
    /// The root of that.
    Std,
}

/// The variance over `dims`, or the standard deviation, shaped as by [`sum`]: of squared distances
/// from the mean over their count, less one if `unbiased`; NaN where that is 0.
///
/// # Errors
/// Returns the errors of [`mean`].
pub fn spread(
    of: Spread,
    x: &Tensor,
    dims: &[usize],
    unbiased: bool,
    keepdim: bool,
) -> Result<Tensor> {
    let (op, is_root) = match of {
        Spread::Var => ("var", false),
        Spread::Std => ("std", true),
    };
    float(op, x)?;
    let dims = valid(op, x, dims)?;
    widened(x, x, |x| {
        folded(&x, &dims, keepdim, |x, fold| {
            let divisor = fold.count() as f64 - f64::from(u8::from(unbiased));
            fold::variance(x, fold, divisor, is_root)
        })
    })
}

/// Which extreme is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// The index (`u32`) of the first extreme along a dimension, which is kept.
    #[allow(clippy::disallowed_methods, reason = "no stride is 0")]
    fn places(self, x: &Tensor, d: usize) -> Result<Tensor> {
        let x = lined(x)?;
        match self {
            Self::Max => x.argmax_keepdim(d),
            Self::Min => x.argmin_keepdim(d),
        }
    }

    /// The extreme along a dimension, which is kept; NaN does not win.
    ///
    /// # Errors
    /// Returns an error if there is no such dimension, or there are no elements.
    #[allow(clippy::disallowed_methods, reason = "no stride is 0")]
    pub fn values(self, x: &Tensor, d: usize) -> Result<Tensor> {
        let x = lined(x)?;
        match self {
            Self::Max => x.max_keepdim(d),
            Self::Min => x.min_keepdim(d),
        }
    }
}

/// The same elements; where they lie in order, with the strides of their shape: a broadcast dimension of one element has
/// stride 0, by which candle's search for an extreme divides.
fn lined(x: &Tensor) -> Result<Tensor> {
    match x.is_contiguous() && x.stride().contains(&0) {
        true => x.reshape(x.dims()),
        false => Ok(x.clone()),
    }
}

/// The largest values over `dims` (none when empty), shaped as by [`sum`], as `torch.amax`.
///
/// A NaN wins; elements that are equally large share the gradient.
///
/// # Errors
/// Returns the errors of [`sum`], and an error if a reduced dimension is empty.
pub fn max(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    extreme(x, dims, keepdim, Side::Max)
}

/// The smallest values over `dims` (none when empty), shaped as by [`sum`], as `torch.amin`.
///
/// A NaN wins; elements that are equally small share the gradient.
///
/// # Errors
/// Returns the errors of [`sum`], and an error if a reduced dimension is empty.
pub fn min(x: &Tensor, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    extreme(x, dims, keepdim, Side::Min)
}

fn extreme(x: &Tensor, dims: &[usize], keepdim: bool, side: Side) -> Result<Tensor> {
    let op = side.name();
    let dims = valid(op, x, dims)?;
    if dims.is_empty() {
        return Ok(x.clone());
    }
    let shape = without(x, &dims, keepdim);
    let count: usize = dims.iter().map(|&d| x.dims()[d]).product();
    if count == 0 {
        bail!("{op}: shape {:?} is empty over dims {dims:?}", x.dims())
    }
    if x.elem_count() == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    // The reduced dimensions come last and become one.
    let mut order: Vec<usize> = (0..x.rank()).filter(|d| !dims.contains(d)).collect();
    let left: usize = order.iter().map(|&d| x.dims()[d]).product();
    order.extend(&dims);
    let x = x.permute(order)?.reshape((left, count))?;
    let values = |x: &Tensor| -> Result<Tensor> {
        let y = side.values(x, 1)?;
        if !has_nan(x)? {
            return Ok(y);
        }
        let any = Side::Max.values(&comparison::ne(x, x)?, 1)?;
        where_cond(&any, &y.affine(f64::NAN, f64::NAN)?, &y)
    };
    // Nothing equals a NaN: of a row that has one, the gradient is NaN.
    let y = gradient::of_one(op, &x, values, |x, y, grad| {
        let hits = comparison::eq(x, &y.broadcast_as(x.dims())?)?.to_dtype(x.dtype())?;
        let share = grad.div(&hits.sum_keepdim(1)?)?;
        share.broadcast_as(x.dims())?.mul(&hits)
    })?;
    y.reshape(shape)
}

/// The index (`u32`, kept dimension) of the first largest or smallest value along the last
/// dimension of a contiguous `x`; the first NaN when there is one.
///
/// # Errors
/// Returns an error if the last dimension is empty.
pub fn first_extreme(x: &Tensor, side: Side) -> Result<Tensor> {
    let x = x.detach();
    if first_place::is_known(&x) {
        let how = match side {
            Side::Max => Reduction::Max,
            Side::Min => Reduction::Min,
        };
        return first_place::first_places(&x, how);
    }
    let last = x.rank().saturating_sub(1);
    let at = side.places(&x, last)?;
    if !has_nan(&x)? {
        return Ok(at);
    }
    let nan = comparison::ne(&x, &x)?;
    let any = Side::Max.values(&nan, last)?;
    where_cond(&any, &Side::Max.places(&nan, last)?, &at)
}

/// The largest or smallest values along `dim` and their first indices (`i64`), as `torch.max(x, dim)`.
///
/// Both results drop `dim`, or keep it with size 1 under `keepdim`. A NaN wins.
///
/// # Errors
/// Returns an error if `dim` is not a dimension of `x` or is empty.
pub fn extreme_dim(x: &Tensor, dim: usize, keepdim: bool, side: Side) -> Result<(Tensor, Tensor)> {
    let op = side.name();
    if x.rank() == 0 && dim == 0 {
        return Ok((x.clone(), Tensor::zeros((), DType::I64, x.device())?));
    }
    let dims = valid(op, x, &[dim])?;
    let shape = without(x, &dims, keepdim);
    if x.dims()[dim] == 0 {
        bail!("{op}: shape {:?} is empty over dim {dim}", x.dims())
    }
    if x.elem_count() == 0 {
        return Ok((
            Tensor::zeros(shape.as_slice(), x.dtype(), x.device())?,
            Tensor::zeros(shape, DType::I64, x.device())?,
        ));
    }
    let last = x.rank() - 1;
    let x = x.transpose(dim, last)?.contiguous()?;
    let at = first_extreme(&x, side)?;
    let values = x.gather(&at, last)?.transpose(dim, last)?;
    let at = at.to_dtype(DType::I64)?.transpose(dim, last)?;
    Ok((values.reshape(shape.as_slice())?, at.reshape(shape)?))
}
