//! Blocked images whose pixels are computed one by one by a tape, chosen, or surrounded by others.
//!
//! Invariant: halos stay as they are, and spare channels get zeros.

use crate::conv::Blocked;
use crate::conv::share::{self, Task, band};
use crate::error::check;
use crate::pointwise::{Operand, Tape};
use crate::scratch::lend;
use crate::{BLOCK, Block, Level, SizeError};

/// What one result costs in operations: it is bound by memory.
const WORK: usize = 60;

/// Runs a closure on bands of each plane of `out`, and clears the spare channels of the last one.
fn bands(out: &mut Blocked, f: impl Fn(&mut Task<'_>) + Send + Sync) {
    let (channels, blocks) = (out.channels(), out.channel_blocks());
    let work = out.planes() * out.height() * out.width() * BLOCK * WORK;
    let band = band(out.height(), out.planes(), work);
    let (row, halo, width) = (out.row(), out.halo(), out.width());
    share::run(share::cut(out, 1, band), work, |mut task: Task<'_>| {
        f(&mut task);
        let spare = channels % BLOCK;
        if spare > 0 && task.plane + 1 == blocks {
            for line in task.planes[0].chunks_exact_mut(row) {
                for pixel in &mut line[halo..halo + width] {
                    pixel[spare..].fill(0.0);
                }
            }
        }
    });
}

/// The blocks of a plane of an image from row `y` on.
fn rows_of(image: &Blocked, task: &Task<'_>, y: usize) -> usize {
    let plane = task.image * image.channel_blocks() + task.plane;
    plane * image.plane() + image.origin() + y * image.row()
}

/// Computes each element by a tape, whose operands are first the images, then floats for each channel. An image of one
/// pixel stands for each.
///
/// # Errors
///
/// Where an image has other sizes than `out`, there are not as many floats as channels, or the tape has another number of
/// operands or not one output.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::conv::{Blocked, pointwise};
/// use fx_kernels::pointwise::{Binary, Chain};
///
/// let mut chain = Chain::new();
/// let (x, factor) = (chain.input(), chain.input());
/// let y = chain.binary(Binary::Mul, x, factor);
/// let tape = chain.finish(&[y]);
/// let image = Blocked::from_nchw(&[1.0, 2.0, 3.0, 4.0], 1, 2, 1, 2, 0)?;
/// let mut out = Blocked::zeros(1, 2, 1, 2, 1);
/// pointwise(Level::best(), &tape, &[&image], &[&[2.0, 10.0]], &mut out)?;
/// let mut plain = [0.0; 4];
/// out.to_nchw(&mut plain)?;
/// assert_eq!(plain, [2.0, 4.0, 30.0, 40.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
pub fn pointwise(
    level: Level,
    tape: &Tape,
    images: &[&Blocked],
    channels: &[&[f32]],
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let (batch, count, height, width) = (out.batch(), out.channels(), out.height(), out.width());
    let is_pixel = |image: &Blocked| (image.height(), image.width()) == (1, 1);
    for image in images {
        let size = if is_pixel(image) {
            (1, 1)
        } else {
            (height, width)
        };
        image.expect("an image", (batch, count, size.0, size.1))?;
    }
    let mut padded: Vec<Vec<f32>> = Vec::with_capacity(channels.len());
    for floats in channels {
        check("the floats of channels", count, floats.len())?;
        let mut floats = floats.to_vec();
        floats.resize(out.channel_blocks() * BLOCK, 0.0);
        padded.push(floats);
    }
    check(
        "the list of operands",
        tape.inputs(),
        images.len() + channels.len(),
    )?;
    check("the list of outputs", tape.outputs(), 1)?;
    let (row, halo) = (out.row(), out.halo());
    bands(out, |task| {
        let pitches: Vec<[usize; 3]> = images
            .iter()
            .map(|image| match is_pixel(image) {
                true => [0, 0, 1],
                false => [image.row() * BLOCK, BLOCK, 1],
            })
            .collect();
        let mut operands = Vec::with_capacity(images.len() + channels.len());
        for (image, strides) in images.iter().zip(&pitches) {
            let y = if is_pixel(image) { 0 } else { task.y0 };
            operands.push(Operand {
                data: image.blocks().as_flattened(),
                start: rows_of(image, task, y) * BLOCK,
                strides,
            });
        }
        for floats in &padded {
            operands.push(Operand {
                data: floats,
                start: task.plane * BLOCK,
                strides: &[0, 0, 1],
            });
        }
        let sizes = [task.rows, width, BLOCK];
        let planes = &mut *task.planes[0];
        let run = |out: &mut [f32]| tape.run(level, &sizes, &operands, &mut [out]);
        // The sizes of all operands were checked.
        if halo == 0 {
            let _ = run(planes.as_flattened_mut());
            return;
        }
        lend(task.rows * width * BLOCK, |room| {
            let _ = run(room);
            let made: &[Block] = room.as_chunks().0;
            for (line, made) in planes.chunks_exact_mut(row).zip(made.chunks_exact(width)) {
                line[halo..halo + width].copy_from_slice(made);
            }
        });
    });
    Ok(())
}

/// Chosen rows, or chosen columns where `is_row` is not set, in any order and as often as asked for.
///
/// # Errors
///
/// Where `out` has other sizes than that gives, or a place is not there.
pub fn places(
    image: &Blocked,
    is_row: bool,
    places: &[usize],
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let (height, width) = match is_row {
        true => (places.len(), image.width()),
        false => (image.height(), places.len()),
    };
    out.expect(
        "the result",
        (image.batch(), image.channels(), height, width),
    )?;
    if let Some(most) = places.iter().max() {
        let side = if is_row {
            image.height()
        } else {
            image.width()
        };
        check("a side that is chosen from", side.max(most + 1), side)?;
    }
    let (row, halo) = (out.row(), out.halo());
    bands(out, |task| {
        for y in 0..task.rows {
            let at = task.y0 + y;
            let from = rows_of(image, task, if is_row { places[at] } else { at });
            let source = &image.blocks()[from..from + image.width()];
            let target = &mut task.planes[0][y * row + halo..][..width];
            match is_row {
                true => target.copy_from_slice(source),
                false => {
                    for (target, place) in target.iter_mut().zip(places) {
                        *target = source[*place];
                    }
                }
            }
        }
    });
    Ok(())
}

/// The image with `[above, below]` rows and `[left, right]` columns of a number around it.
///
/// # Errors
///
/// Where `out` has other sizes than that gives.
pub fn pad(
    image: &Blocked,
    [above, below]: [usize; 2],
    [left, right]: [usize; 2],
    value: f32,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let (height, width) = (image.height() + above + below, image.width() + left + right);
    out.expect(
        "the result",
        (image.batch(), image.channels(), height, width),
    )?;
    let (row, halo) = (out.row(), out.halo());
    bands(out, |task| {
        for y in 0..task.rows {
            let at = (task.y0 + y).wrapping_sub(above);
            // The first pixel of the row, if the image has it.
            let from = (at < image.height()).then(|| rows_of(image, task, at));
            let target = &mut task.planes[0][y * row + halo..][..width];
            let Some(from) = from else {
                target.fill([value; BLOCK]);
                continue;
            };
            target[..left].fill([value; BLOCK]);
            target[left..left + image.width()]
                .copy_from_slice(&image.blocks()[from..from + image.width()]);
            target[left + image.width()..].fill([value; BLOCK]);
        }
    });
    Ok(())
}
