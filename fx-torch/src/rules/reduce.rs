//! Operators that put elements together: sums, extremes, sorting, products of matrices.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, same};
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
fn spread(function: Function, call: &Call<'_>) -> Result<Value> {
    let unbiased = match (call.get("correction"), call.get("unbiased")) {
        (Some(Value::Int(0)), _) => false,
        (Some(Value::Int(1)) | None, None) => true,
        (None, Some(Value::Bool(unbiased))) => *unbiased,
        (Some(Value::Float(correction)), _) if [0.0, 1.0].contains(correction) => {
            *correction == 1.0
        }
        _ => return Err(Error::msg("`correction` is neither 0 nor 1")),
    };
    let dim = call.get("dim").cloned().unwrap_or(Value::None);
    let keepdim: bool = call.or("keepdim", false)?;
    function.call_as(args![
        call.at(0)?.clone(),
        dim = dim,
        unbiased = unbiased,
        keepdim = keepdim
    ])
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.max" => |call| extreme(function!(ops::amax), function!(ops::max), call),
    "aten.min" => |call| extreme(function!(ops::amin), function!(ops::min), call),
    "aten.argmax" => |call| index_of(function!(ops::argmax), call),
    "aten.argmin" => |call| index_of(function!(ops::argmin), call),
    "aten.var" => |call| spread(function!(ops::var), call),
    "aten.std" => |call| spread(function!(ops::std), call),
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
    "aten.linalg_det" => ops::linalg::det["A" => "x"],
    "aten.linalg_inv" => ops::linalg::inv["A" => "a"],
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
