//! Operators on images: pools, sizes, grids, windows.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::entry::{Entry, by, same, same_function};
use crate::call::Call;

/// A pool: without a stride it is the window's size.
macro_rules! pool {
    ($name:ident, $function:path) => {
        fn $name(call: &Call<'_>) -> Result<Value> {
            let mut args = call.args.clone();
            let window = call.value("kernel_size")?.clone();
            let is_missing = |value: &Value| match value {
                Value::None => true,
                Value::List(items) => items.is_empty(),
                _ => false,
            };
            match args.iter_mut().find(|(name, _)| *name == "stride") {
                Some((_, stride)) if is_missing(stride) => *stride = window,
                Some(_) => {}
                None => args.push(("stride", window)),
            }
            for name in ["padding"] {
                if !args.iter().any(|(known, _)| *known == name) {
                    args.push((name, Value::Int(0)));
                }
            }
            same_function(function!($function), &[], &call.with_args(args))
        }
    };
}
pool!(max_pool1d, ops::max_pool1d);
pool!(max_pool3d, ops::max_pool3d);
pool!(avg_pool1d, ops::avg_pool1d);
pool!(avg_pool2d, ops::avg_pool2d);
pool!(avg_pool3d, ops::avg_pool3d);

fn max_pool2d(call: &Call<'_>) -> Result<Value> {
    pool!(pooled, ops::max_pool2d);
    let mut args = call.args.clone();
    if call.get("dilation").is_none() {
        args.push(("dilation", Value::Int(1)));
    }
    pooled(&call.with_args(args))
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
    "aten.max_pool1d" => max_pool1d,
    "aten.max_pool2d" => max_pool2d,
    "aten.max_pool3d" => max_pool3d,
    "aten.avg_pool1d" => avg_pool1d,
    "aten.avg_pool2d" => avg_pool2d,
    "aten.avg_pool3d" => avg_pool3d,
    "aten.grid_sampler" => grid_sampler,
    "aten.upsample_nearest1d" => |call| interpolated(call, "nearest", false),
    "aten.upsample_nearest2d" => |call| interpolated(call, "nearest", false),
    "aten.upsample_nearest3d" => |call| interpolated(call, "nearest", false),
    "aten.upsample_linear1d" => |call| interpolated(call, "linear", true),
    "aten.upsample_bilinear2d" => |call| interpolated(call, "bilinear", true),
    "aten.upsample_bicubic2d" => |call| interpolated(call, "bicubic", true),
    "aten.upsample_trilinear3d" => |call| interpolated(call, "trilinear", true),
};

pub(crate) const SAME: &[Entry] = same! {
    "aten.adaptive_avg_pool1d" => ops::adaptive_avg_pool1d,
    "aten.adaptive_avg_pool2d" => ops::adaptive_avg_pool2d,
    "aten.adaptive_avg_pool3d" => ops::adaptive_avg_pool3d,
    "aten.channel_shuffle" => ops::channel_shuffle,
    "aten.col2im" => ops::fold,
    "aten.im2col" => ops::unfold,
};
