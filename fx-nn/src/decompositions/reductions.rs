//! Reductions, norms and distances, by sums and maxima.

use fx_core::Result;
use fx_core::value::DType;

use super::{alike, decompose, dtype_of, widened};
use crate::tensor::Tensor;
use crate::{Dims, ops};

/// The least number above 0 of 16 bits.
const LEAST_F16: f64 = 5.960_464_477_539_063e-8;

decompose! {
    ops::aminmax(x: Tensor, dim: Option<i64>, keepdim: bool) =>
        Ok((ops::amin(&x, dim, keepdim)?, ops::amax(&x, dim, keepdim)?));
    ops::std(x: Tensor, dim: Dims, unbiased: bool, keepdim: bool) |call| => widened(call, ("x", &x), |x| {
        but_at_zero(&ops::var(x, dim, unbiased, keepdim)?, Tensor::sqrt)
    });
    ops::var_mean(x: Tensor, dim: Dims, unbiased: bool, keepdim: bool) =>
        Ok((ops::var(&x, dim.clone(), unbiased, keepdim)?, ops::mean(&x, dim, keepdim)?));
    ops::std_mean(x: Tensor, dim: Dims, unbiased: bool, keepdim: bool) =>
        Ok((ops::std(&x, dim.clone(), unbiased, keepdim)?, ops::mean(&x, dim, keepdim)?));
    ops::nansum(x: Tensor, dim: Dims, keepdim: bool) => ops::sum(&without_nan(&x)?, dim, keepdim);
    ops::nanmean(x: Tensor, dim: Dims, keepdim: bool) => nanmean(&x, dim, keepdim);
    ops::count_nonzero(x: Tensor, dim: Dims) => ops::sum(&x.ne(0)?, dim, false);
    ops::norm(x: Tensor, p: f64, dim: Dims, keepdim: bool) |call| =>
        widened(call, ("x", &x), |x| norm(x, p, dim, keepdim));
    ops::vector_norm(x: Tensor, ord: f64, dim: Dims, keepdim: bool) |call| =>
        widened(call, ("x", &x), |x| norm(x, ord, dim, keepdim));
    ops::pairwise_distance(x1: Tensor, x2: Tensor, p: f64, eps: f64, keepdim: bool) |call| => {
        let apart = ((&x1 - &x2)? + eps)?;
        match dtype_of(call, "x1") == dtype_of(call, "x2") {
            true => widened(call, ("x1", &apart), |apart| norm(apart, p, Dims::One(-1), keepdim)),
            false => norm(&apart, p, Dims::One(-1), keepdim),
        }
    };
    ops::cosine_similarity(x1: Tensor, x2: Tensor, dim: i64, eps: f64) |call| => {
        let [x1, x2] = alike(call, ("x1", &x1), ("x2", &x2))?;
        // As a number of the tensors' type.
        let is_zero = dtype_of(call, "x1") == Some(DType::F16) && eps.abs() <= LEAST_F16 / 2.0;
        let eps = if is_zero { 0.0 } else { eps };
        widened(call, ("x1", &x1), |x1| widened(call, ("x2", &x2), |x2| cosine(x1, x2, dim, eps)))
    };
    ops::argsort(x: Tensor, dim: i64, descending: bool) => Ok(ops::sort(&x, dim, descending)?.1);
    ops::msort(x: Tensor) => Ok(ops::sort(&x, 0, false)?.0);
    ops::trace(x: Tensor) => ops::sum(&ops::diagonal(&x, 0, 0, 1)?, Dims::All, false);
}

fn without_nan(x: &Tensor) -> Result<Tensor> {
    ops::r#where(&ops::isnan(x)?, 0, x)
}

fn nanmean(x: &Tensor, dim: Dims, keepdim: bool) -> Result<Tensor> {
    let sum = ops::sum(&without_nan(x)?, dim.clone(), keepdim)?;
    let count = ops::sum(&ops::logical_not(&ops::isnan(x)?)?, dim, keepdim)?;
    sum / count
}

fn norm(x: &Tensor, p: f64, dim: Dims, keepdim: bool) -> Result<Tensor> {
    let size = x.abs()?;
    if p == f64::INFINITY {
        ops::amax(&size, dim, keepdim)
    } else if p == f64::NEG_INFINITY {
        ops::amin(&size, dim, keepdim)
    } else if p == 0.0 {
        ops::type_as(&ops::sum(&x.ne(0)?, dim, keepdim)?, x)
    } else if p == 1.0 {
        ops::sum(&size, dim, keepdim)
    } else if p == 2.0 {
        but_at_zero(&ops::sum(&(x * x)?, dim, keepdim)?, Tensor::sqrt)
    } else if p < 0.0 {
        ops::sum(&size.pow(p)?, dim, keepdim)?.pow(1.0 / p)
    } else {
        let powers = but_at_zero(&size, |size| size.pow(p))?;
        but_at_zero(&ops::sum(&powers, dim, keepdim)?, |sum| sum.pow(1.0 / p))
    }
}

/// `f` of x where it is not 0, and 0 without a slope elsewhere.
fn but_at_zero(x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let is_zero = x.eq(0)?;
    ops::r#where(&is_zero, 0, &f(&ops::r#where(&is_zero, 1, x)?)?)
}

fn cosine(x1: &Tensor, x2: &Tensor, dim: i64, eps: f64) -> Result<Tensor> {
    let length = |x: &Tensor| ops::clamp(&norm(x, 2.0, Dims::One(dim), true)?, eps, None);
    let product = ((x1 / length(x1)?)? * (x2 / length(x2)?)?)?;
    ops::sum(&product, dim, false)
}
