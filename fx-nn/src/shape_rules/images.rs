//! Images: in other sizes, as blocks of pixels, with pixels as channels, and read at points.

use fx_core::ir::TensorMeta;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::Dim;
use fx_core::{Error, Result};

use super::windows::{Steps, images, windows};
use super::{
    Elements, at_least, divided, number, require, require_one_type, rules, tensor, word, wrong, x,
};
use crate::ops;

rules! {
    interpolate => ops::interpolate;
    unfold => ops::unfold;
    fold => ops::fold;
    pixel_shuffle => ops::pixel_shuffle;
    pixel_unshuffle => ops::pixel_unshuffle;
    grid_sample => ops::grid_sample;
    affine_grid => ops::affine_grid;
}

/// Images of other sizes: those that are given, or a factor of their own.
fn interpolate(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, over) = images::<2>(call, x)?;
    match word(call, "mode", &["nearest", "bilinear"])? {
        "nearest" if call.arg("align_corners")?.is_none() => {}
        "bilinear" => require(call, x, Elements::Fractions)?,
        _ => return Err(wrong(call, "`align_corners` is for the mode \"bilinear\"")),
    }
    let factor = number(call, "scale_factor")?;
    let sizes = match (call.arg("size")?.is_none(), factor) {
        (false, None) => match &call.sizes("size")?[..] {
            [side] => [side.clone(), side.clone()],
            [rows, columns] => [rows.clone(), columns.clone()],
            other => {
                return Err(wrong(
                    call,
                    format_args!("`size` is one number or two, and not {other:?}"),
                ));
            }
        },
        (true, Some(factor)) if factor > 0.0 => {
            let [rows, columns] = &over;
            [scaled(call, rows, factor)?, scaled(call, columns, factor)?]
        }
        _ => return Err(wrong(call, "give a size, or a factor above 0")),
    };
    for size in over.iter().chain(&sizes) {
        at_least(call, size, 1, format_args!("an image of {size} is empty"))?;
    }
    shape.extend(sizes);
    Ok(tensor(shape, x.dtype))
}

fn scaled(call: &RuleCall<'_>, size: &Dim, factor: f64) -> Result<Dim> {
    match size.as_known() {
        Some(size) => Ok(Dim::known((size as f64 * factor).floor() as usize)),
        None if factor.fract() == 0.0 => size * (factor as i64),
        None => Err(wrong(
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
fn unfold(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, over) = images::<2>(call, x)?;
    for size in shape
        .iter()
        .skip(shape.len().saturating_sub(1))
        .chain(&over)
    {
        at_least(call, size, 1, "an image has channels and pixels")?;
    }
    let count = blocks(call, &over)?;
    if let Some(channels) = shape.last_mut() {
        *channels = (&*channels * pixels(call)?)?;
    }
    shape.push(count);
    Ok(tensor(shape, x.dtype))
}

/// The image of which columns are the blocks.
fn fold(call: &mut RuleCall<'_>) -> Result<Fake> {
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
        at_least(call, size, 1, format_args!("an image of {size} is empty"))?;
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
    at_least(call, &channels, 1, "there is one channel at least")?;
    let mut shape = before.to_vec();
    shape.push(channels);
    shape.extend(size);
    Ok(tensor(shape, x.dtype))
}

/// How many times an image is wider.
fn factor(call: &mut RuleCall<'_>, param: &str) -> Result<Dim> {
    let by = Dim::from(call.int(param)?);
    at_least(call, &by, 1, format_args!("`{param}` is above 0"))?;
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

fn pixel_shuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
    let by = factor(call, "upscale_factor")?;
    let (lead, [channels, rows, columns]) = image(call)?;
    let channels = divided(call, channels, (&by * &by)?, "channels")?;
    let image = [channels, (rows * &by)?, (columns * &by)?];
    let shape = lead.iter().cloned().chain(image).collect();
    Ok(tensor(shape, x(call)?.dtype))
}

fn pixel_unshuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
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
fn grid_sample(call: &mut RuleCall<'_>) -> Result<Fake> {
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
        format!("a point has {dims} numbers")
    })?;
    for size in pixels {
        at_least(call, size, 1, "an image has pixels")?;
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

fn affine_grid(call: &mut RuleCall<'_>) -> Result<Fake> {
    let theta = call.tensor("theta")?;
    require(call, theta, Elements::Fractions)?;
    let sizes = call.sizes("size")?;
    for size in &sizes {
        at_least(call, size, 1, format_args!("a size of {size} is empty"))?;
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
