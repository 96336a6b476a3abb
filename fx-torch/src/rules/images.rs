//! Operators on images: pools, sizes, grids, windows.

use fx_nn::ir::{Function, ParamSpec};
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, rank, same, same_function};
use crate::call::Call;

/// A pool: without a stride it is the window's size.
fn pool(function: Function, call: &Call<'_>) -> Result<Value> {
    let mut args = call.args.clone();
    args.retain(|(name, value)| match value {
        Value::List(items) => *name != "stride" || !items.is_empty(),
        value => *name != "stride" || !matches!(value, Value::None),
    });
    // What PyTorch leaves out and fx asks for.
    let window = call.value("kernel_size")?.clone();
    let left_out = [
        ("stride", window),
        ("padding", Value::Int(0)),
        ("dilation", Value::Int(1)),
    ];
    for (name, value) in left_out {
        let is_asked_for = |param: &ParamSpec| *param.name == *name && param.default.is_none();
        let is_there = args.iter().any(|(known, _)| *known == name);
        if !is_there && function.params().iter().any(is_asked_for) {
            args.push((name, value));
        }
    }
    // A list of one number stands for all dims.
    for (_, value) in &mut args {
        let one = match value {
            Value::List(items) if items.len() == 1 => items[0].clone(),
            _ => continue,
        };
        *value = one;
    }
    let divisor = args
        .iter()
        .position(|(name, _)| *name == "divisor_override");
    let divisor = divisor.map(|at| args.remove(at).1);
    let call = call.with_args(args);
    let Some(Value::Int(divisor)) = divisor else {
        return same_function(function, &[], &call);
    };
    // The sums of windows, over another number than their elements'.
    if call.or("ceil_mode", false)? {
        return Err(Error::msg("`divisor_override` with `ceil_mode`"));
    }
    let mut args = call.args.clone();
    args.retain(|(name, _)| *name != "count_include_pad");
    args.push(("count_include_pad", Value::Bool(true)));
    let means = same_function(function, &[], &call.with_args(args))?;
    let window = match call.value("kernel_size")? {
        Value::List(_) => call.of::<Vec<i64>>("kernel_size")?,
        one => vec![i64::from_value(one.clone())?],
    };
    let dims = rank(&call.own()?)?.saturating_sub(2).max(1) as usize;
    let area: i64 = match window.as_slice() {
        [one] => one.pow(dims as u32),
        several => several.iter().product(),
    };
    Ok(Value::object(
        (Tensor::from_value(means)? * (area as f64 / divisor as f64))?,
    ))
}

/// Another size of an image: by sizes, or by factors.
fn interpolated(call: &Call<'_>, mode: &str, has_corners: bool) -> Result<Value> {
    let of = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let corners = match has_corners {
        true => of("align_corners"),
        false => Value::None,
    };
    let size = of("output_size");
    // PyTorch's sizes are of the factors even where it has both.
    let factors = match size {
        Value::None => of("scale_factors"),
        _ => Value::None,
    };
    function!(ops::interpolate).call_as(args![
        call.at(0)?.clone(),
        size = size,
        scale_factor = factors,
        mode = mode.to_string(),
        align_corners = corners
    ])
}

/// Another size of an image whose places are means of what they cover.
fn smoothed(call: &Call<'_>, mode: &str) -> Result<Value> {
    let of = |name: &str| call.get(name).cloned().unwrap_or(Value::None);
    let size = of("output_size");
    let factors = match size {
        Value::None => of("scale_factors"),
        _ => Value::None,
    };
    function!(ops::interpolate_with).call_as(args![
        call.at(0)?.clone(),
        size = size,
        scale_factor = factors,
        mode = mode.to_string(),
        align_corners = of("align_corners"),
        antialias = true
    ])
}

/// A grid's options are numbers.
fn grid_sampler(call: &Call<'_>) -> Result<Value> {
    let named = |name: &str, names: [&'static str; 3]| -> Result<&'static str> {
        let at: i64 = call.of(name)?;
        let found = usize::try_from(at)
            .ok()
            .and_then(|at| names.get(at).copied());
        found.ok_or_else(|| Error::msg(format_args!("`{name}` is {at}")))
    };
    let mode = named("interpolation_mode", ["bilinear", "nearest", "bicubic"])?;
    let padding = named("padding_mode", ["zeros", "border", "reflection"])?;
    let grid: Tensor = call.of("grid")?;
    let sampled = ops::grid_sample(
        &call.own()?,
        &grid,
        mode,
        padding,
        call.or("align_corners", false)?,
    )?;
    Ok(Value::object(sampled))
}

pub(crate) const RULES: &[Entry] = by! {
    "aten.max_pool1d" => |call| pool(function!(ops::max_pool1d), call),
    "aten.max_pool2d" => |call| pool(function!(ops::max_pool2d), call),
    "aten.max_pool3d" => |call| pool(function!(ops::max_pool3d), call),
    "aten.max_pool1d_with_indices" => |call| pool(function!(ops::max_pool1d_with_indices), call),
    "aten.max_pool2d_with_indices" => |call| pool(function!(ops::max_pool2d_with_indices), call),
    "aten.max_pool3d_with_indices" => |call| pool(function!(ops::max_pool3d_with_indices), call),
    "aten.avg_pool1d" => |call| pool(function!(ops::avg_pool1d), call),
    "aten.avg_pool2d" => |call| pool(function!(ops::avg_pool2d), call),
    "aten.avg_pool3d" => |call| pool(function!(ops::avg_pool3d), call),
    "aten.grid_sampler" => grid_sampler,
    "aten.grid_sampler_2d" => grid_sampler,
    "aten.upsample_nearest1d" => |call| interpolated(call, "nearest", false),
    "aten.upsample_nearest2d" => |call| interpolated(call, "nearest", false),
    "aten.upsample_nearest3d" => |call| interpolated(call, "nearest", false),
    "aten._upsample_nearest_exact1d" => |call| interpolated(call, "nearest-exact", false),
    "aten._upsample_nearest_exact2d" => |call| interpolated(call, "nearest-exact", false),
    "aten._upsample_nearest_exact3d" => |call| interpolated(call, "nearest-exact", false),
    "aten._upsample_bilinear2d_aa" => |call| smoothed(call, "bilinear"),
    "aten._upsample_bicubic2d_aa" => |call| smoothed(call, "bicubic"),
    "aten.upsample_linear1d" => |call| interpolated(call, "linear", true),
    "aten.upsample_bilinear2d" => |call| interpolated(call, "bilinear", true),
    "aten.upsample_bicubic2d" => |call| interpolated(call, "bicubic", true),
    "aten.upsample_trilinear3d" => |call| interpolated(call, "trilinear", true),
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.adaptive_avg_pool1d" => ops::adaptive_avg_pool1d,
    "aten.adaptive_avg_pool2d" => ops::adaptive_avg_pool2d,
    "aten.adaptive_avg_pool3d" => ops::adaptive_avg_pool3d,
    "aten._adaptive_avg_pool2d" => ops::adaptive_avg_pool2d,
    "aten._adaptive_avg_pool3d" => ops::adaptive_avg_pool3d,
    "aten.adaptive_max_pool1d" => ops::adaptive_max_pool1d_with_indices,
    "aten.adaptive_max_pool2d" => ops::adaptive_max_pool2d_with_indices,
    "aten.adaptive_max_pool3d" => ops::adaptive_max_pool3d_with_indices,
    "aten.channel_shuffle" => ops::channel_shuffle,
    "aten.col2im" => ops::fold,
    "aten.im2col" => ops::unfold,
};
