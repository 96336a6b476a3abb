//! Images: in other sizes, as blocks of pixels, with pixels as channels, and read at points.

use fx_core::Result;
use fx_core::shapes::{Fake, RuleCall};
use fx_core::value::Dim;

use super::windows::{Window, parted, windows};
use super::{Elements, at_least, require, require_one_type, rules, tensor, word, wrong, x};
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

fn interpolate(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (before, over) = x.shape.split_at(x.shape.len().min(2));
    let mut shape = before.to_vec();
    match (call.arg("size")?, call.arg("scale_factor")?) {
        (size, _) if !size.is_none() => {
            let sizes = call.sizes("size")?;
            match &sizes[..] {
                [one] => shape.extend(over.iter().map(|_| one.clone())),
                all => shape.extend(all.iter().cloned()),
            }
        }
        (_, Fake::Float(Some(factor))) => {
            for size in over {
                shape.push(match (size.as_known(), factor.fract() == 0.0) {
                    (Some(size), _) => Dim::known((size as f64 * factor).floor() as usize),
                    (None, true) => (size * (*factor as i64))?,
                    (None, false) => {
                        return Err(wrong(
                            call,
                            format_args!("{size} times {factor} is known only when the graph runs: give `size`"),
                        ));
                    }
                });
            }
        }
        _ => return Err(wrong(call, "give a size or a factor")),
    }
    Ok(tensor(shape, x.dtype))
}

/// How many blocks an image has.
fn blocks(call: &mut RuleCall<'_>, over: &[Dim; 2]) -> Result<Dim> {
    let (kernel, dilation) = (call.ints::<2>("kernel_size")?, call.ints::<2>("dilation")?);
    let (padding, stride) = (call.ints::<2>("padding")?, call.ints::<2>("stride")?);
    let mut count = Dim::known(1);
    for (at, size) in over.iter().enumerate() {
        let window = Window {
            kernel: kernel[at].into(),
            stride: stride[at],
            padding: padding[at],
            dilation: dilation[at],
            ceil: false,
        };
        count = (count * windows(call, size, &window)?)?;
    }
    Ok(count)
}

/// How many pixels a block has.
fn pixels(call: &RuleCall<'_>) -> Result<Dim> {
    let [rows, columns] = call.ints::<2>("kernel_size")?;
    Dim::from(rows) * columns
}

/// The blocks as columns.
fn unfold(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let (mut shape, over) = parted::<2>(call, &x.shape)?;
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
    let channels = call.env().divided(wide, &pixels);
    let channels =
        channels.map_err(|e| wrong(call, format_args!("channels of {pixels} pixels: {e}")))?;
    at_least(call, &channels, 1, "there is one channel at least")?;
    let mut shape = before.to_vec();
    shape.push(channels);
    shape.extend(size);
    Ok(tensor(shape, x.dtype))
}

fn pixel_shuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let by = Dim::from(call.int("upscale_factor")?);
    let mut shape = x.shape.clone();
    if let [.., channels, h, w] = &mut shape[..] {
        *channels = call.env().divided(channels, &(&by * &by)?)?;
        (*h, *w) = ((&*h * &by)?, (&*w * &by)?);
    }
    Ok(tensor(shape, x.dtype))
}

fn pixel_unshuffle(call: &mut RuleCall<'_>) -> Result<Fake> {
    let x = x(call)?;
    let by = Dim::from(call.int("downscale_factor")?);
    let mut shape = x.shape.clone();
    if let [.., channels, h, w] = &mut shape[..] {
        *channels = (&*channels * (&by * &by)?)?;
        for size in [h, w] {
            *size = call.env().divided(size, &by)?;
        }
    }
    Ok(tensor(shape, x.dtype))
}

/// A pixel for each point of the grid.
fn grid_sample(call: &mut RuleCall<'_>) -> Result<Fake> {
    let (x, grid) = (x(call)?, call.tensor("grid")?);
    word(call, "mode", &["bilinear", "nearest"])?;
    word(call, "padding_mode", &["zeros", "border", "reflection"])?;
    require(call, x, Elements::Fractions)?;
    require_one_type(call, x, grid)?;
    let ([n, channels, pixels @ ..], [m, rows, columns, parts]) = (&x.shape[..], &grid.shape[..])
    else {
        return Err(wrong(
            call,
            format_args!(
                "the images {:?} and the grids {:?} have four dims",
                x.shape, grid.shape
            ),
        ));
    };
    if pixels.len() != 2 {
        return Err(wrong(
            call,
            format_args!("the images {:?} have four dims", x.shape),
        ));
    }
    call.same(n, m, || "there is a grid for each image".to_string())?;
    call.same(parts, &2.into(), || "a point has two numbers".to_string())?;
    for size in pixels {
        at_least(call, size, 1, "an image has pixels")?;
    }
    let shape = [n, channels, rows, columns].map(Dim::clone).to_vec();
    Ok(tensor(shape, x.dtype))
}

fn affine_grid(call: &mut RuleCall<'_>) -> Result<Fake> {
    let theta = call.tensor("theta")?;
    require(call, theta, Elements::Fractions)?;
    let sizes = call.sizes("size")?;
    for size in &sizes {
        at_least(call, size, 1, format_args!("a size of {size} is empty"))?;
    }
    let ([n, _, h, w], [maps, rows, columns]) = (&sizes[..], &theta.shape[..]) else {
        return Err(wrong(
            call,
            format_args!(
                "the size {sizes:?} has four numbers, the maps {:?} three dims",
                theta.shape
            ),
        ));
    };
    call.same(n, maps, || "there is a map for each image".to_string())?;
    for (size, wanted) in [(rows, 2), (columns, 3)] {
        call.same(size, &wanted.into(), || {
            format!("a map has 2 rows and 3 columns: {:?}", theta.shape)
        })?;
    }
    let shape = vec![n.clone(), h.clone(), w.clone(), Dim::known(2)];
    Ok(tensor(shape, theta.dtype))
}
