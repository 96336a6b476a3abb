//! Images: in other sizes, as blocks of pixels, with pixels as channels, and read at points.

use fx_core::ir::TensorMeta;
use fx_core::ir::ValueMeta;
use fx_core::shapes::RuleCall;
use fx_core::trace::FromValue;
use fx_core::value::{DType, Dim};
use fx_core::{Error, Result};

use super::windows::{Steps, images, windows};
use super::{
    Elements, at_least, divided, require, require_one_type, rules, tensor, truth, word, wrong, x,
};
use crate::kernels::resample::{Mode, Way};
use crate::ops;
use crate::tensor::Scales;

rules! {
    interpolate => ops::interpolate, ops::interpolate_with;
    unfold => ops::unfold;
    fold => ops::fold;
    pixel_shuffle => ops::pixel_shuffle;
    pixel_unshuffle => ops::pixel_unshuffle;
    grid_sample => ops::grid_sample;
    affine_grid => ops::affine_grid;
}

/// Images of other sizes: those that are given, or factors of their own.
fn interpolate(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let has = |param: &str| {
        call.function()
            .params()
            .iter()
            .any(|known| known.name == param)
    };
    let (mut antialias, mut recomputed) = (false, false);
    if has("antialias") {
        antialias = call.flag("antialias")?;
        recomputed = truth(call, "recompute_scale_factor")?.unwrap_or(false);
    }
    let x = x(call)?;
    let way = Way::of(
        call.text("mode")?,
        x.shape.len(),
        truth(call, "align_corners")?,
        antialias,
    )
    .map_err(|problem| wrong(call, format_args!("the input {:?}: {problem}", x.shape)))?;
    if let Some(dtype) = x.dtype {
        let is_half = matches!(dtype, DType::F16 | DType::BF16);
        way.check(dtype.is_floating_point(), is_half, dtype == DType::U8)
            .map_err(|problem| wrong(call, format_args!("{problem}, and not {dtype}")))?;
    }
    let (before, over) = x.shape.split_at(2);
    let (size, factors) = (call.arg("size")?, factors(call)?);
    let factors = factors.each(over.len()).map_err(|e| wrong(call, e))?;
    let sizes = match (size.is_none(), factors) {
        (false, Some(_)) | (true, None) => {
            return Err(wrong(call, "give one of size and scale_factor"));
        }
        (false, None) if recomputed => {
            return Err(wrong(
                call,
                "recompute_scale_factor is for a scale_factor, and not for a size",
            ));
        }
        (false, None) => match call.sizes("size")? {
            one if one.len() == 1 => vec![one[0].clone(); over.len()],
            sizes if sizes.len() == over.len() => sizes,
            other => {
                let dims = over.len();
                return Err(wrong(
                    call,
                    format_args!(
                        "`size` is one number, or one for each of the {dims} dims, and not {other:?}"
                    ),
                ));
            }
        },
        (true, Some(factors)) => over
            .iter()
            .zip(factors)
            .map(|(size, factor)| scaled(call, size, factor))
            .collect::<Result<_>>()?,
    };
    let least = if way.mode == Mode::Area { 0 } else { 1 };
    for size in &sizes {
        at_least(
            call,
            size,
            least,
            format_args!("an image has at least one pixel along each dim, and not {size}"),
        )?;
    }
    for size in over {
        at_least(
            call,
            size,
            1,
            format_args!("an image has at least one pixel along each dim, and not {size}"),
        )?;
    }
    at_least(
        call,
        &before[1],
        least,
        "the image has no channels, and needs one at least",
    )?;
    let shape = before.iter().cloned().chain(sizes).collect();
    Ok(tensor(shape, x.dtype))
}

/// The factors of a call, which are known.
fn factors(call: &RuleCall<'_>) -> Result<Scales> {
    let arg = call.arg("scale_factor")?;
    let value = arg.known().ok_or_else(|| {
        wrong(
            call,
            "`scale_factor` is known only when the graph runs: give `size`",
        )
    })?;
    Scales::from_value(value).map_err(|e| wrong(call, e))
}

/// A size times a factor, rounded down: of a named one, a factor that is a whole number of halves, quarters, and so on.
fn scaled(call: &RuleCall<'_>, size: &Dim, factor: f64) -> Result<Dim> {
    if let Some(size) = size.as_known() {
        return Ok(Dim::known((size as f64 * factor).floor() as usize));
    }
    // The product with a size is exact then, as that of whole numbers is.
    let parts = (0..=10).map(|bits| 1i64 << bits);
    let mut whole = parts.filter(|parts| (factor * *parts as f64).fract() == 0.0);
    match whole.next() {
        Some(parts) if factor < 1e6 => (size * (factor * parts as f64) as i64)?.div(parts),
        _ => Err(wrong(
            call,
            format_args!("{size} times {factor} is known only when the graph runs: give `size`"),
        )),
    }
}

/// How many blocks an image has.
fn blocks(call: &mut RuleCall<'_>, over: &[Dim; 2]) -> Result<Dim> {
    let kernel = call.ints::<2>("kernel_size")?.map(Dim::from);
    let steps = Steps {
        stride: call.ints("stride")?,
        padding: call.ints("padding")?,
        dilation: call.ints("dilation")?,
        ceil: false,
    };
    Dim::product(&windows(call, over, &kernel, &steps)?)
}

/// How many pixels a block has.
fn pixels(call: &RuleCall<'_>) -> Result<Dim> {
    let [rows, columns] = call.ints::<2>("kernel_size")?;
    Dim::from(rows) * columns
}

/// The blocks as columns.
fn unfold(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    let (mut shape, over) = images::<2>(call, x)?;
    for size in shape
        .iter()
        .skip(shape.len().saturating_sub(1))
        .chain(&over)
    {
        at_least(
            call,
            size,
            1,
            "an image has one channel and one pixel at least",
        )?;
    }
    let count = blocks(call, &over)?;
    if let Some(channels) = shape.last_mut() {
        *channels = (&*channels * pixels(call)?)?;
    }
    shape.push(count);
    Ok(tensor(shape, x.dtype))
}

/// The image of which columns are the blocks.
fn fold(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let x = x(call)?;
    require(call, x, Elements::Fractions)?;
    let (2 | 3, [before @ .., wide, count]) = (x.shape.len(), &x.shape[..]) else {
        return Err(wrong(
            call,
            format_args!("the blocks have two or three dims, and not {:?}", x.shape),
        ));
    };
    let size = call.ints::<2>("output_size")?.map(Dim::from);
    for size in &size {
        at_least(
            call,
            size,
            1,
            format_args!("an image has at least one pixel along each dim, and not {size}"),
        )?;
    }
    let found = blocks(call, &size)?;
    call.same(&found, count, || {
        format!(
            "the blocks of an image of {size:?} are not those of {:?}",
            x.shape
        )
    })?;
    let pixels = pixels(call)?;
    let channels = divided(call, wide, pixels, "rows of pixels")?;
    at_least(call, &channels, 1, "the rows make one channel at least")?;
    let mut shape = before.to_vec();
    shape.push(channels);
    shape.extend(size);
    Ok(tensor(shape, x.dtype))
}

/// How many times an image is wider.
fn factor(call: &mut RuleCall<'_>, param: &str) -> Result<Dim> {
    let by = Dim::from(call.int(param)?);
    at_least(
        call,
        &by,
        1,
        format_args!("`{param}` is 1 or above, and not {by}"),
    )?;
    Ok(by)
}

/// The sizes before an image, its channels, its rows and its columns.
type Image<'m> = (&'m [Dim], [&'m Dim; 3]);

fn image<'c>(call: &RuleCall<'c>) -> Result<Image<'c>> {
    match &x(call)?.shape[..] {
        [lead @ .., channels, rows, columns] => Ok((lead, [channels, rows, columns])),
        other => Err(wrong(
            call,
            format_args!("an image has three dims at least, and not {other:?}"),
        )),
    }
}

fn pixel_shuffle(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let by = factor(call, "upscale_factor")?;
    let (lead, [channels, rows, columns]) = image(call)?;
    let channels = divided(call, channels, (&by * &by)?, "channels")?;
    let image = [channels, (rows * &by)?, (columns * &by)?];
    let shape = lead.iter().cloned().chain(image).collect();
    Ok(tensor(shape, x(call)?.dtype))
}

fn pixel_unshuffle(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let by = factor(call, "downscale_factor")?;
    let (lead, [channels, rows, columns]) = image(call)?;
    let channels = (channels * (&by * &by)?)?;
    let image = [
        channels,
        divided(call, rows, &by, "rows")?,
        divided(call, columns, &by, "columns")?,
    ];
    let shape = lead.iter().cloned().chain(image).collect();
    Ok(tensor(shape, x(call)?.dtype))
}

/// A pixel for each point of the grid.
fn grid_sample(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let (x, grid) = (x(call)?, call.tensor("grid")?);
    word(call, "mode", &["bilinear", "nearest", "bicubic"])?;
    word(call, "padding_mode", &["zeros", "border", "reflection"])?;
    require(call, x, Elements::Fractions)?;
    require_one_type(call, x, grid)?;
    let ([n, channels, pixels @ ..], [m, over @ .., parts]) = (&x.shape[..], &grid.shape[..])
    else {
        return Err(unlike(call, x, grid));
    };
    if !(2..=3).contains(&pixels.len()) || over.len() != pixels.len() {
        return Err(unlike(call, x, grid));
    }
    call.same(n, m, || "there is a grid for each image".to_string())?;
    let dims = pixels.len();
    call.same(parts, &dims.into(), || {
        format!("a point of the grid has {dims} numbers in the last dim")
    })?;
    for size in pixels {
        at_least(
            call,
            size,
            1,
            "an image has one pixel at least along each dim",
        )?;
    }
    let shape = [n, channels].into_iter().chain(over).cloned().collect();
    Ok(tensor(shape, x.dtype))
}

fn unlike(call: &RuleCall<'_>, x: &TensorMeta, grid: &TensorMeta) -> Error {
    wrong(
        call,
        format_args!(
            "the images {:?} and the grids {:?} have four dims, or five",
            x.shape, grid.shape
        ),
    )
}

fn affine_grid(call: &mut RuleCall<'_>) -> Result<ValueMeta> {
    let theta = call.tensor("theta")?;
    require(call, theta, Elements::Fractions)?;
    let sizes = call.sizes("size")?;
    for size in &sizes {
        at_least(
            call,
            size,
            1,
            format_args!("each size is 1 or above, and not {size}"),
        )?;
    }
    let ([n, _, over @ ..], 4..=5, [maps, rows, columns]) =
        (&sizes[..], sizes.len(), &theta.shape[..])
    else {
        return Err(wrong(
            call,
            format_args!(
                "the size {sizes:?} has four numbers or five, the maps {:?} three dims",
                theta.shape
            ),
        ));
    };
    let dims = over.len();
    call.same(n, maps, || "there is a map for each image".to_string())?;
    for (size, wanted) in [(rows, dims), (columns, dims + 1)] {
        call.same(size, &wanted.into(), || {
            format!(
                "a map has {dims} rows and {} columns: {:?}",
                dims + 1,
                theta.shape
            )
        })?;
    }
    let mut shape = vec![n.clone()];
    shape.extend(over.iter().cloned());
    shape.push(Dim::known(dims));
    Ok(tensor(shape, theta.dtype))
}
