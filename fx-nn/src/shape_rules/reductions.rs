//! Reductions of dims, scans along one, sorting and statistics.

use fx_core::Result;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::value::{DType, Dim};

use super::{
    Elements, at_least, fractional, like, number, of_floats, place, promoted, require,
    require_one_type, require_rank, resized, rules, shape_of, tensor, with_places, word, wrong, x,
};
use crate::ops;

rules! {
    |call| not_empty(call, Elements::Any) => ops::amax, ops::amin;
    |call| not_empty(call, Elements::Any).map(twice) => ops::aminmax;
    |call| reduced(call, summed) => ops::sum, ops::nansum, ops::prod;
    |call| reduced(call, truth) => ops::all, ops::any;
    |call| reduced(call, of_floats) => ops::logsumexp;
    fractions => ops::mean, ops::nanmean, ops::var, ops::std;
    |call| fractions(call).map(twice) => ops::var_mean, ops::std_mean;
    |call| norm(call, "p") => ops::norm;
    |call| norm(call, "ord") => ops::vector_norm;
    count_nonzero => ops::count_nonzero;
    place_of_extreme => ops::argmax, ops::argmin;
    |call| one_dim(call, Elements::Any).map(with_places) => ops::max, ops::min, ops::mode;
    |call| one_dim(call, Elements::Numbers).map(with_places) => ops::median, ops::nanmedian;
    kthvalue => ops::kthvalue;
    |call| scanned(call, summed) => ops::cumsum, ops::cumprod;
    |call| scanned(call, own).map(with_places) => ops::cummax, ops::cummin, ops::sort;
    |call| scanned(call, |_| DType::I64) => ops::argsort;
    logcumsumexp => ops::logcumsumexp;
    topk => ops::topk;
    quantile => ops::quantile, ops::nanquantile;
    covariances => ops::cov, ops::corrcoef;
    diff => ops::diff;
}

fn own(dtype: DType) -> DType {
    dtype
}

/// Whole numbers are summed as `i64`.
pub(super) fn summed(dtype: DType) -> DType {
    match dtype.is_floating_point() {
        true => dtype,
        false => DType::I64,
    }
}

/// Bytes stay bytes.
fn truth(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::U8,
        _ => DType::Bool,
    }
}

fn twice(one: ValueMeta) -> ValueMeta {
    ValueMeta::Tuple(vec![one.clone(), one])
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

fn reduced(call: &mut RuleCall<'_>, dtype: fn(DType) -> DType) -> Result<ValueMeta> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    let shape = without(&x.shape, &places, call.flag("keepdim")?);
    Ok(tensor(shape, x.dtype.map(dtype)))
}

fn fractions(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, x(call)?, Elements::Fractions)?;
    reduced(call, own)
}

/// Of nothing there is no least and no largest element.
fn not_empty(call: &mut RuleCall<'_>, elements: Elements) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, elements)?;
    for place in call.places("dim", x.shape.len())? {
        if let Some(size) = x.shape.get(place) {
            let problem = format_args!(
                "a dim without elements has no least one: dim {place} of {:?}",
                x.shape
            );
            at_least(call, size, 1, problem)?;
        }
    }
    reduced(call, own)
}

/// An infinite or negative norm is of the largest or the least elements.
fn norm(call: &mut RuleCall<'_>, order: &str) -> Result<ValueMeta> {
    match number(call, order)? {
        Some(order) if order < 0.0 || order.is_infinite() => not_empty(call, Elements::Fractions),
        _ => fractions(call),
    }
}

fn count_nonzero(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let places = call.places("dim", x.shape.len())?;
    Ok(tensor(without(&x.shape, &places, false), Some(DType::I64)))
}

/// What is left of a dim, which is not empty.
fn one_dim(call: &mut RuleCall<'_>, elements: Elements) -> Result<ValueMeta> {
    place(call, "dim", x(call)?.shape.len())?;
    not_empty(call, elements)
}

fn place_of_extreme(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let values = one_dim(call, Elements::Numbers)?;
    Ok(tensor(shape_of(&values).to_vec(), Some(DType::I64)))
}

/// The first is 1.
fn kthvalue(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let place = place(call, "dim", x.shape.len())?;
    let one = Dim::known(1);
    let size = x.shape.get(place).unwrap_or(&one);
    let k = call.size("k")?;
    let problem = format!("there is no element {k} of {size}");
    at_least(call, &k, 1, &problem)?;
    at_least(call, &(size - &k)?, 0, &problem)?;
    one_dim(call, Elements::Numbers).map(with_places)
}

fn scanned(call: &mut RuleCall<'_>, dtype: fn(DType) -> DType) -> Result<ValueMeta> {
    let x = x(call)?;
    place(call, "dim", x.shape.len())?;
    Ok(like(x, x.dtype.map(dtype)))
}

fn logcumsumexp(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    require(call, x(call)?, Elements::Fractions)?;
    scanned(call, own)
}

fn topk(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Numbers)?;
    let place = place(call, "dim", x.shape.len())?;
    let one = Dim::known(1);
    let size = x.shape.get(place).unwrap_or(&one);
    let k = call.size("k")?;
    let problem = format!("there are no {k} elements of {size}");
    at_least(call, &k, 0, &problem)?;
    at_least(call, &(size - &k)?, 0, &problem)?;
    Ok(with_places(tensor(resized(&x.shape, place, k), x.dtype)))
}

/// Several quantiles give a dim in front.
fn quantile(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let words = ["linear", "lower", "higher", "midpoint", "nearest"];
    word(call, "interpolation", &words)?;
    require(call, x, Elements::Single)?;
    for size in &x.shape {
        at_least(call, size, 1, "a tensor without elements has no quantiles")?;
    }
    let many = match call.arg("q")? {
        ValueMeta::Single(q) => {
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
fn covariances(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
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
fn diff(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let n = super::count(call, "n")?;
    if x.shape.is_empty() {
        return Err(wrong(call, "a tensor without dims has no differences"));
    }
    let (before, behind) = (
        call.optional_tensor("prepend")?,
        call.optional_tensor("append")?,
    );
    let parts: Vec<_> = [before, Some(x), behind].into_iter().flatten().collect();
    // As PyTorch, it does not look at the dim then.
    if n == 0 && parts.len() == 1 {
        return Ok(like(x, x.dtype));
    }
    let place = place(call, "dim", x.shape.len())?;
    for part in [before, behind].into_iter().flatten() {
        require_rank(call, part, x.shape.len()..=x.shape.len())?;
        for (at, (a, b)) in x.shape.iter().zip(&part.shape).enumerate() {
            if at != place {
                call.same(a, b, || {
                    format!(
                        "`prepend` and `append` have the sizes of the tensor but along dim {place}"
                    )
                })?;
            }
        }
    }
    if n == 0 {
        return Ok(like(x, x.dtype));
    }
    let shapes = super::joins::without_empty(super::joins::shapes_of(&parts));
    let shape = super::joins::one_shape(call, &shapes, Some(place))?;
    let size = shape.get(place).cloned().unwrap_or(Dim::known(0));
    let left = super::not_negative(call, (size - n)?)?;
    Ok(tensor(resized(&shape, place, left), promoted(&parts)))
}
