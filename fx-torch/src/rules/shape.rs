//! Operators that move elements: shapes, orders, parts, what is joined and repeated.

use fx_nn::prelude::*;
use fx_nn::{Error, Result, operator};

use super::entry::{Entry, by, rank, same};
use crate::call::Call;

/// Elements `start..end` of a dim, every `step`th; ends may be sizes that a run decides.
pub(super) fn slice(call: &Call<'_>) -> Result<Value> {
    let own = call.own()?;
    let end = match call.get("end") {
        Some(Value::Int(i64::MAX)) | None => Value::None,
        Some(end) => end.clone(),
    };
    let start = call.get("start").cloned().unwrap_or(Value::None);
    let step = call.get("step").cloned().unwrap_or(Value::None);
    let dim: i64 = call.or("dim", 0)?;
    if matches!(end, Value::None)
        && matches!(start, Value::None | Value::Int(0))
        && matches!(step, Value::None | Value::Int(1))
    {
        return Ok(call.at(0)?.clone());
    }
    let dim = if dim < 0 { dim + rank(&own)? } else { dim };
    let all = || Value::Slice(Box::new([Value::None, Value::None, Value::None]));
    let mut index: Vec<Value> = (0..dim).map(|_| all()).collect();
    index.push(Value::Slice(Box::new([start, end, step])));
    operator::getitem.call_as((call.at(0)?.clone(), Value::Tuple(index.into())))
}

fn squeeze(call: &Call<'_>) -> Result<Value> {
    let own = call.own()?;
    let dims: Vec<i64> = match call.get("dim") {
        Some(Value::Int(dim)) => vec![*dim],
        Some(_) => call.of("dim")?,
        None => (0..rank(&own)?).collect(),
    };
    let rank = rank(&own)?;
    let mut dims: Vec<i64> = dims.iter().map(|dim| dim.rem_euclid(rank.max(1))).collect();
    dims.sort_unstable();
    let squeezed = dims
        .iter()
        .rev()
        .try_fold(own, |x, dim| ops::squeeze(&x, *dim))?;
    Ok(Value::object(squeezed))
}

/// In the shape of another tensor.
fn shaped_as(call: &Call<'_>) -> Result<Value> {
    let other: Tensor = call.of("other")?;
    Ok(Value::object(ops::reshape(&call.own()?, other.shape()?)?))
}

fn expand_as(call: &Call<'_>) -> Result<Value> {
    let other: Tensor = call.of("other")?;
    Ok(Value::object(ops::expand(&call.own()?, other.shape()?)?))
}

/// Shapes may not be given as an element type: `view.dtype` reads the bytes in another way.
fn view(call: &Call<'_>) -> Result<Value> {
    match call.at(1)? {
        Value::DType(_) => Err(Error::msg(
            "`view` in another element type reads bytes, which fx does not",
        )),
        size => function!(ops::reshape).call_as((call.at(0)?.clone(), size.clone())),
    }
}

fn numpy_t(call: &Call<'_>) -> Result<Value> {
    let own = call.own()?;
    let dims: Vec<i64> = (0..rank(&own)?).rev().collect();
    Ok(Value::object(ops::permute(&own, dims)?))
}

fn matrix_t(call: &Call<'_>) -> Result<Value> {
    Ok(Value::object(ops::transpose(&call.own()?, -2, -1)?))
}

/// `repeat_interleave` by one number along a dim.
fn repeat_interleave(call: &Call<'_>) -> Result<Value> {
    let (own, repeats) = (call.at(0)?.clone(), call.value("repeats")?.clone());
    let dim = call.get("dim").cloned().unwrap_or(Value::None);
    function!(ops::repeat_interleave).call_as(args![own, repeats, dim = dim])
}

fn split_with_sizes(call: &Call<'_>) -> Result<Value> {
    let name = if call.get("split_sizes").is_some() {
        "split_sizes"
    } else {
        "split_size"
    };
    let sizes = call.value(name)?.clone();
    let dim: i64 = call.or("dim", 0)?;
    function!(ops::split_with_sizes).call_as(args![call.at(0)?.clone(), sizes, dim = dim])
}

fn tensor_split(call: &Call<'_>) -> Result<Value> {
    let parts = call.get("indices").or(call.get("sections")).cloned();
    let parts = parts.ok_or_else(|| Error::msg("the parts are missing"))?;
    let dim: i64 = call.or("dim", 0)?;
    function!(ops::tensor_split).call_as(args![call.at(0)?.clone(), parts, dim = dim])
}

fn pad(call: &Call<'_>) -> Result<Value> {
    let mode: String = call.or("mode", "constant".to_string())?;
    let value = call.get("value").cloned().unwrap_or(Value::None);
    function!(ops::pad).call_as(args![
        call.at(0)?.clone(),
        call.value("pad")?.clone(),
        mode = mode,
        value = value
    ])
}

/// Windows of a dim, every `step`th, whose elements are a last dim.
pub(super) fn windows(own: &Tensor, dim: i64, size: i64, step: i64) -> Result<Tensor> {
    let dim = dim.rem_euclid(rank(own)?.max(1));
    let rest = (own.size(dim)? - size)?;
    let count: Int = operator::floordiv.call_as((rest, step))?;
    let starts = ops::arange(Int::from(0), (count + 1)?, Int::from(1), None)?;
    let starts = ops::unsqueeze(&(starts * step)?, 1)?;
    let within = ops::arange(Int::from(0), Int::from(size), Int::from(1), None)?;
    let at = ops::ravel(&(starts + within)?)?;
    let all = ops::index_select(own, dim, &at)?;
    let parted = ops::unflatten(&all, dim, vec![Int::from(-1), Int::from(size)])?;
    ops::movedim(&parted, dim + 1, -1)
}

fn unfold(call: &Call<'_>) -> Result<Value> {
    let (dim, size, step) = (call.of("dimension")?, call.of("size")?, call.of("step")?);
    Ok(Value::object(windows(&call.own()?, dim, size, step)?))
}

/// The middle of some dims, or of all, comes first, or the first element to the middle.
fn shifted(call: &Call<'_>, inverse: bool) -> Result<Value> {
    let own = call.own()?;
    let dims = match call.get("dim") {
        Some(Value::Int(dim)) => vec![*dim],
        Some(_) => call.of::<Vec<i64>>("dim")?,
        None => (0..rank(&own)?).collect(),
    };
    let shifted = dims.into_iter().try_fold(own, |x, dim| {
        let half: Int = operator::floordiv.call_as((x.size(dim)?, 2))?;
        let by = if inverse { (half * -1)? } else { half };
        function!(ops::roll).call_as::<Tensor>((x, by, dim))
    })?;
    Ok(Value::object(shifted))
}

/// Padding with what lies at the ends.
fn padded(mode: &str, call: &Call<'_>) -> Result<Value> {
    function!(ops::pad).call_as(args![
        call.at(0)?.clone(),
        call.value("padding")?.clone(),
        mode = mode.to_string()
    ])
}

/// The elements of another tensor, in this one's shape and type.
fn copy(call: &Call<'_>) -> Result<Value> {
    let src: Tensor = call.of("src")?;
    let spread = ops::expand(&src, call.own()?.shape()?)?;
    match call.dtype(1)? == call.dtype(0)? {
        true => Ok(Value::object(spread)),
        false => Ok(Value::object(ops::to_dtype(&spread, call.dtype(0)?)?)),
    }
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.fft_fftshift" => |call| shifted(call, false),
    "aten.fft_ifftshift" => |call| shifted(call, true),
    "aten.reflection_pad1d" => |call| padded("reflect", call),
    "aten.reflection_pad2d" => |call| padded("reflect", call),
    "aten.reflection_pad3d" => |call| padded("reflect", call),
    "aten.replication_pad1d" => |call| padded("replicate", call),
    "aten.replication_pad2d" => |call| padded("replicate", call),
    "aten.replication_pad3d" => |call| padded("replicate", call),
    "aten.copy" => copy,
    "aten.unfold" => unfold,
    "aten.slice" => slice,
    "aten.squeeze" => squeeze,
    "aten.view_as" => shaped_as,
    "aten.reshape_as" => shaped_as,
    "aten.expand_as" => expand_as,
    "aten.view" => view,
    "aten._unsafe_view" => view,
    "aten.H" => numpy_t,
    "aten.T" => numpy_t,
    "aten.adjoint" => matrix_t,
    "aten.mH" => matrix_t,
    "aten.mT" => matrix_t,
    "aten.matrix_H" => numpy_t,
    "aten.numpy_T" => numpy_t,
    "aten.repeat_interleave" => repeat_interleave,
    "aten.split_with_sizes" => split_with_sizes,
    "aten.split.sizes" => split_with_sizes,
    "aten.tensor_split" => tensor_split,
    "aten.pad" => pad,
    "aten.constant_pad_nd" => pad,
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.atleast_1d" => ops::atleast_1d,
    "aten.atleast_2d" => ops::atleast_2d,
    "aten.atleast_3d" => ops::atleast_3d,
    "aten.block_diag" => ops::block_diag,
    "aten.cartesian_prod" => ops::cartesian_prod,
    "aten.column_stack" => ops::column_stack,
    "aten.combinations" => ops::combinations,
    "aten.diag" => ops::diag,
    "aten.diag_embed" => ops::diag_embed,
    "aten.diagflat" => ops::diagflat,
    "aten.dsplit" => ops::dsplit["sections" => "indices_or_sections", "indices" => "indices_or_sections"],
    "aten.dstack" => ops::dstack,
    "aten.fliplr" => ops::fliplr,
    "aten.flipud" => ops::flipud,
    "aten.hsplit" => ops::hsplit["sections" => "indices_or_sections", "indices" => "indices_or_sections"],
    "aten.msort" => ops::msort,
    "aten.vsplit" => ops::vsplit["sections" => "indices_or_sections", "indices" => "indices_or_sections"],
    "aten.broadcast_tensors" => ops::broadcast_tensors,
    "aten.broadcast_to" => ops::broadcast_to,
    "aten.cat" => ops::cat,
    "aten.concat" => ops::cat,
    "aten.chunk" => ops::chunk,
    "aten.diagonal" => ops::diagonal,
    "aten.diff" => ops::diff,
    "aten.expand" => ops::expand,
    "aten.flatten" => ops::flatten,
    "aten.flip" => ops::flip,
    "aten.hstack" => ops::hstack,
    "aten.meshgrid" => ops::meshgrid,
    "aten.movedim" => ops::movedim,
    "aten.narrow" => ops::narrow,
    "aten.permute" => ops::permute,
    "aten.pixel_shuffle" => ops::pixel_shuffle,
    "aten.pixel_unshuffle" => ops::pixel_unshuffle,
    "aten.ravel" => ops::ravel,
    "aten.repeat" => ops::repeat,
    "aten.reshape" => ops::reshape,
    "aten.roll" => ops::roll,
    "aten.select" => ops::select,
    "aten.split" => ops::split,
    "aten.stack" => ops::stack,
    "aten.swapaxes" => ops::swapaxes,
    "aten.swapdims" => ops::swapdims,
    "aten.select_scatter" => ops::select_scatter,
    "aten.diagonal_scatter" => ops::diagonal_scatter,
    "aten.rot90" => ops::rot90,
    "aten.t" => ops::t,
    "aten.tile" => ops::tile,
    "aten.transpose" => ops::transpose,
    "aten.tril" => ops::tril,
    "aten.triu" => ops::triu,
    "aten.unbind" => ops::unbind,
    "aten.unflatten" => ops::unflatten,
    "aten.unsqueeze" => ops::unsqueeze,
    "aten.vstack" => ops::vstack,
};
