//! Reductions of dims, scans along one, sorting and statistics.

use fx_core::Result;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::{DType, Dim};

use super::{
    Elements, at_least, fractional, like, number, place, promoted, require, require_one_type,
    resized, rules, tensor, with_places, word, wrong, x,
};
use crate::ops;

rules! {
    |call| reduced(call, Some) => ops::amax, ops::amin;
    |call| reduced(call, |dtype| Some(summed(dtype))) => ops::sum, ops::nansum;
    reduced_fractions => ops::mean, ops::nanmean, ops::var, ops::std,
        ops::logsumexp, ops::norm, ops::vector_norm;
    |call| reduced(call, |dtype| Some(truth(dtype))) => ops::all, ops::any;
    reduced_without_keepdim => ops::count_nonzero;
    |call| one_dim(call, |dtype| Some(summed(dtype))) => ops::prod;
    place_of_extreme => ops::argmax, ops::argmin;
    extreme_and_place => ops::max, ops::min, ops::median, ops::nanmedian, ops::mode, ops::kthvalue;
    moments => ops::var_mean, ops::std_mean;
    extremes => ops::aminmax;
    |call| scanned(call, summed) => ops::cumsum, ops::cumprod;
    |call| scanned(call, |dtype| dtype) => ops::logcumsumexp;
    scan_and_place => ops::cummax, ops::cummin;
    sorted => ops::sort;
    |call| scanned(call, |_| DType::I64) => ops::argsort;
    topk => ops::topk;
    quantile => ops::quantile, ops::nanquantile;
    covariances => ops::cov, ops::corrcoef;
    diff => ops::diff;
}

/// Bytes stay bytes.
fn truth(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::U8,
        _ => DType::Bool,
    }
}

fn reduced_fractions(call: &mut RuleCall<'_>) -> Result<Fake> {
    if call.function() != fx_core::function!(ops::logsumexp) {
        require(call, x(call)?, Elements::Fractions)?;
    }
    reduced(call, |dtype| fractional(Some(dtype)))
}

/// Whole numbers are summed as `i64`.
pub(super) fn summed(dtype: DType) -> DType {
    match dtype.is_floating_point() {
        true => dtype,
        false => DType::I64,
    }
}

/// The sizes that are left of dims.
pub(super) fn without(shape: &[Dim], places: &[usize], keepdim: bool) -> Vec<Dim> {
    let sizes = shape.iter().enumerate();
    let kept = sizes.filter_map(|(at, size)| match (places.contains(&at), keepdim) {
        (false, _) => Some(size.clone()),
        (true, true) => Some(Dim::known(1)),
        (true, false) => None,
    });
    kept.collect()
}

fn reduced(call: &mut RuleCall<'_>, dtype: fn(DType) -> Option<DType>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    let shape = without(&x.shape, &places, call.flag("keepdim")?);
    Ok(tensor(shape, x.dtype.and_then(dtype)))
}

fn reduced_without_keepdim(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    Ok(tensor(without(&x.shape, &places, false), Some(DType::I64)))
}

fn one_dim(call: &mut RuleCall<'_>, dtype: fn(DType) -> Option<DType>) -> Result<Fake> {
    reduced(call, dtype)
}

fn place_of_extreme(call: &mut RuleCall<'_>) -> Result<Fake> {
    require(call, x(call)?, Elements::Numbers)?;
    one_dim(call, |_| Some(DType::I64))
}

/// What is left of a dim.
fn left(call: &mut RuleCall<'_>) -> Result<Vec<Dim>> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let keepdim = call.flag("keepdim")?;
    Ok(without(&x.shape, &[place], keepdim))
}

fn extreme_and_place(call: &mut RuleCall<'_>) -> Result<Fake> {
    let dtype = x(call)?.dtype;
    Ok(with_places(tensor(left(call)?, dtype)))
}

fn moments(call: &mut RuleCall<'_>) -> Result<Fake> {
    let one = reduced_fractions(call)?;
    Ok(Fake::Tuple(vec![one.clone(), one]))
}

fn extremes(call: &mut RuleCall<'_>) -> Result<Fake> {
    let one = reduced(call, Some)?;
    Ok(Fake::Tuple(vec![one.clone(), one]))
}

fn scanned(call: &mut RuleCall<'_>, dtype: fn(DType) -> DType) -> Result<Fake> {
    let x = x(call)?;
    call.place(call.int("dim")?, x.shape.len())?;
    Ok(like(x, x.dtype.map(dtype)))
}

fn scan_and_place(call: &mut RuleCall<'_>) -> Result<Fake> {
    scanned(call, |dtype| dtype).map(with_places)
}

fn sorted(call: &mut RuleCall<'_>) -> Result<Fake> {
    scan_and_place(call)
}

fn topk(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let place = call.place(call.int("dim")?, x.shape.len())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(place) {
        let k = call.size("k")?;
        let most = (&*size - &k)?;
        if !call.env().at_least(&most, 0)? {
            return Err(fx_core::Error::msg(format_args!("topk: {k} of {size}")));
        }
        *size = k;
    }
    Ok(with_places(tensor(shape, x.dtype)))
}

/// Several quantiles give a dim in front.
fn quantile(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let words = ["linear", "lower", "higher", "midpoint", "nearest"];
    word(call, "interpolation", &words)?;
    require(call, x, Elements::Single)?;
    for size in &x.shape {
        at_least(call, size, 1, "a tensor without elements has no quantiles")?;
    }
    let many = match call.arg("q")? {
        Fake::Single(q) => {
            require_one_type(call, x, q)?;
            match &q.shape[..] {
                [] => None,
                [many] => Some(many.clone()),
                other => {
                    return Err(wrong(
                        call,
                        format_args!("`q` has one dim at most, and not {other:?}"),
                    ));
                }
            }
        }
        _ => match number(call, "q")? {
            Some(q) if !(0.0..=1.0).contains(&q) => {
                return Err(wrong(call, format_args!("`q` is in [0, 1], and not {q}")));
            }
            _ => None,
        },
    };
    let rank = x.shape.len();
    let places = match call.arg("dim")?.is_none() {
        true => (0..rank).collect(),
        false => vec![place(call, "dim", rank)?],
    };
    let left = without(&x.shape, &places, call.flag("keepdim")?);
    Ok(tensor(many.into_iter().chain(left).collect(), x.dtype))
}

/// A matrix of the rows with each other; of one row a number.
fn covariances(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    require(call, x, Elements::Numbers)?;
    let dtype = fractional(x.dtype);
    Ok(match &x.shape[..] {
        [] | [_] => tensor(Vec::new(), dtype),
        // A size with a name is taken not to be 1.
        [rows, _] if *rows == 0 || call.env().at_least(rows, 2)? => {
            tensor(vec![rows.clone(); 2], dtype)
        }
        [_, _] => tensor(Vec::new(), dtype),
        other => {
            return Err(wrong(
                call,
                format_args!("the variables are rows, and not {other:?}"),
            ));
        }
    })
}

/// Each difference is one element less.
fn diff(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let n = super::count(call, "n")?;
    if x.shape.is_empty() {
        return Err(wrong(call, "the tensor has a dim at least"));
    }
    let place = place(call, "dim", x.shape.len())?;
    if n == 0 {
        return Ok(like(x, x.dtype));
    }
    let (before, behind) = (
        call.optional_tensor("prepend")?,
        call.optional_tensor("append")?,
    );
    let parts: Vec<_> = [before, Some(x), behind].into_iter().flatten().collect();
    let shapes: Vec<Vec<Dim>> = parts.iter().map(|meta| meta.shape.clone()).collect();
    let shape = super::joins::one_shape(call, &shapes, Some(place))?;
    let size = shape.get(place).cloned().unwrap_or(Dim::known(0));
    let left = super::not_negative(call, (size - n)?)?;
    Ok(tensor(resized(&shape, place, left), promoted(&parts)))
}
