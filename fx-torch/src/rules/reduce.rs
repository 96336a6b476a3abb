//! Operators that put elements together: sums, extremes, sorting, products of matrices.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, rank, same};
use crate::call::Call;

/// The largest or smallest of all elements, or along a dim with its index.
fn extreme(of_all: Function, along: Function, call: &Call<'_>) -> Result<Value> {
    let Some(dim) = call.get("dim") else {
        return of_all.call_as((call.at(0)?.clone(),));
    };
    let keepdim: bool = call.or("keepdim", false)?;
    along.call_as(args![call.at(0)?.clone(), dim.clone(), keepdim = keepdim])
}

/// The index of an extreme: of all elements, in their order, where no dim is named.
fn index_of(function: Function, call: &Call<'_>) -> Result<Value> {
    match call.get("dim") {
        Some(dim) => {
            let keepdim: bool = call.or("keepdim", false)?;
            function.call_as(args![call.at(0)?.clone(), dim.clone(), keepdim = keepdim])
        }
        None => function.call_as(args![ops::ravel(&call.own()?)?, 0, keepdim = false]),
    }
}

/// A variance by `correction`, or by whether it is of a sample.
fn variance(call: &Call<'_>) -> Result<Tensor> {
    let correction = match (call.get("correction"), call.get("unbiased")) {
        (Some(Value::Int(correction)), _) => *correction as f64,
        (Some(Value::Float(correction)), _) => *correction,
        (None, Some(Value::Bool(false))) => 0.0,
        (None, _) => 1.0,
        (Some(other), _) => {
            return Err(Error::msg(format_args!(
                "`correction` is {}",
                other.describe()
            )));
        }
    };
    let dim = match call.get("dim") {
        Some(Value::List(dims)) if dims.is_empty() => Value::None,
        Some(dim) => dim.clone(),
        None => Value::None,
    };
    let keepdim: bool = call.or("keepdim", false)?;
    let by = |unbiased: bool| -> Result<Tensor> {
        function!(ops::var).call_as(args![
            call.at(0)?.clone(),
            dim = dim.clone(),
            unbiased = unbiased,
            keepdim = keepdim
        ])
    };
    if correction == 0.0 || correction == 1.0 {
        return by(correction == 1.0);
    }
    // The mean of squares, over another number than there are elements.
    let own = call.own()?;
    let dims: Vec<i64> = match &dim {
        Value::None => (0..rank(&own)?).collect(),
        Value::Int(dim) => vec![*dim],
        _ => call.of("dim")?,
    };
    let mut count = Int::from(1);
    for dim in dims {
        count = (count * own.size(dim)?)?;
    }
    let sum: Tensor = operator::mul.call_as((by(false)?, count))?;
    let count = ops::full(Vec::<i64>::new(), 1, Some(call.dtype(0)?)).and_then(|one| {
        let count: Tensor = operator::mul.call_as((one, count))?;
        count - correction
    })?;
    sum / ops::relu(&count)?
}

fn deviation(call: &Call<'_>) -> Result<Tensor> {
    ops::sqrt(&variance(call)?)
}

/// Those with the mean.
fn with_mean(spread: Tensor, call: &Call<'_>) -> Result<Value> {
    let dim = call.get("dim").cloned().unwrap_or(Value::None);
    let keepdim: bool = call.or("keepdim", false)?;
    let mean: Value =
        function!(ops::mean).call_as(args![call.at(0)?.clone(), dim = dim, keepdim = keepdim])?;
    Ok(Value::Tuple(vec![Value::object(spread), mean].into()))
}

/// A norm of elements along dims: without an order, of all that are named.
fn norm(call: &Call<'_>) -> Result<Value> {
    let dims = match call.get("dim") {
        None => None,
        Some(Value::Int(dim)) => Some(vec![*dim]),
        Some(_) => Some(call.of::<Vec<i64>>("dim")?),
    };
    let order: Option<f64> = call.maybe("ord")?;
    let count = match &dims {
        Some(dims) => dims.len() as i64,
        None => rank(&call.own()?)?,
    };
    if order.is_some() && count != 1 {
        return Err(Error::msg("a norm of matrices by an order"));
    }
    let mut own = call.own()?;
    if let Some(dtype) = call.maybe::<DType>("dtype")? {
        own = ops::to_dtype(&own, dtype)?;
    }
    let dims = dims.map_or(Value::None, |dims| {
        Value::List(dims.into_iter().map(Value::Int).collect())
    });
    let keepdim: bool = call.or("keepdim", false)?;
    function!(ops::vector_norm).call_as(args![
        own,
        ord = order.unwrap_or(2.0),
        dim = dims,
        keepdim = keepdim
    ])
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.max" => |call| extreme(function!(ops::amax), function!(ops::max), call),
    "aten.min" => |call| extreme(function!(ops::amin), function!(ops::min), call),
    "aten.argmax" => |call| index_of(function!(ops::argmax), call),
    "aten.argmin" => |call| index_of(function!(ops::argmin), call),
    "aten.linalg_norm" => norm,
    "aten.var" => |call| Ok(Value::object(variance(call)?)),
    "aten.std" => |call| Ok(Value::object(deviation(call)?)),
    "aten.var_mean" => |call| with_mean(variance(call)?, call),
    "aten.std_mean" => |call| with_mean(deviation(call)?, call),
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.all" => ops::all,
    "aten.amax" => ops::amax,
    "aten.amin" => ops::amin,
    "aten.any" => ops::any,
    "aten.argsort" => ops::argsort,
    "aten.addbmm" => ops::addbmm,
    "aten.addmv" => ops::addmv,
    "aten.addr" => ops::addr,
    "aten.aminmax" => ops::aminmax,
    "aten.bincount" => ops::bincount,
    "aten.cdist" => ops::cdist,
    "aten.corrcoef" => ops::corrcoef,
    "aten.count_nonzero" => ops::count_nonzero,
    "aten.cummax" => ops::cummax,
    "aten.cummin" => ops::cummin,
    "aten.inner" => ops::inner,
    "aten.kron" => ops::kron,
    "aten.kthvalue" => ops::kthvalue,
    "aten.logcumsumexp" => ops::logcumsumexp,
    "aten.median.dim" => ops::median,
    "aten.mode" => ops::mode,
    "aten.nanmean" => ops::nanmean,
    "aten.nanmedian.dim" => ops::nanmedian,
    "aten.nansum" => ops::nansum,
    "aten.trace" => ops::trace,
    "aten.vdot" => ops::vdot,
    "aten.linalg_matrix_norm" => ops::linalg::matrix_norm["A" => "a"],
    "aten.addmm" => ops::addmm,
    "aten.baddbmm" => ops::baddbmm,
    "aten.bmm" => ops::bmm,
    "aten.cumprod" => ops::cumprod,
    "aten.cumsum" => ops::cumsum,
    "aten.dot" => ops::dot,
    "aten.histc" => ops::histc,
    "aten.linalg_vector_norm" => ops::vector_norm,
    "aten.logsumexp" => ops::logsumexp,
    "aten.matmul" => ops::matmul,
    "aten.mean" => ops::mean,
    "aten.mm" => ops::mm,
    "aten.mv" => ops::mv,
    "aten.norm" => ops::norm,
    "aten.outer" => ops::outer,
    "aten.prod" => ops::prod,
    "aten.sort" => ops::sort,
    "aten.sum" => ops::sum,
    "aten.topk" => ops::topk,
};
