//! Operations on blocked images that change values one by one or move them: sums, factors, activations, joined
//! channels, larger images. None of them touches a halo.

use pulp::{Simd, WithSimd};

use crate::conv::epilogue::{Epilogue, clamp};
use crate::conv::share::{self, Task};
use crate::conv::{Blocked, share::band};
use crate::error::check;
use crate::{Activation, BLOCK, Block, Level, SizeError};

/// What one result costs in operations: it is bound by memory.
const WORK: usize = 60;

/// `activation(a + b)`.
///
/// # Errors
///
/// Where the three have different sizes; halos may differ.
pub fn add(
    level: Level,
    a: &Blocked,
    b: &Blocked,
    activation: Activation,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    b.expect(
        "the second summand",
        (a.batch(), a.channels(), a.height(), a.width()),
    )?;
    map(level, a, Other::Image(b), activation, out)
}

/// `activation(image * factor)` with one factor for each channel of each image: `factors` is `[n, channels]`.
///
/// # Errors
///
/// Where `out` has other sizes than the image, or `factors` another length.
pub fn scale(
    level: Level,
    image: &Blocked,
    factors: &[f32],
    activation: Activation,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    check(
        "the factors",
        image.batch() * image.channels(),
        factors.len(),
    )?;
    map(level, image, Other::Factors(factors), activation, out)
}

/// `activation(image * factor + shift)` with a factor and a shift for each channel: a batch norm that has
/// its statistics.
///
/// # Errors
///
/// Where `out` has other sizes than the image, or `factors` or `shifts` are not as many as its channels.
pub fn affine(
    level: Level,
    image: &Blocked,
    factors: &[f32],
    shifts: &[f32],
    activation: Activation,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    check("the factors", image.channels(), factors.len())?;
    check("the shifts", image.channels(), shifts.len())?;
    map(
        level,
        image,
        Other::Affine(factors, shifts),
        activation,
        out,
    )
}

/// `activation(image)`.
///
/// # Errors
///
/// Where `out` has other sizes than the image.
pub fn activate(
    level: Level,
    image: &Blocked,
    activation: Activation,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    map(level, image, Other::Nothing, activation, out)
}

/// What a value is combined with.
#[derive(Clone, Copy)]
enum Other<'a> {
    Nothing,
    Image(&'a Blocked),
    Factors(&'a [f32]),
    Affine(&'a [f32], &'a [f32]),
}

fn map(
    level: Level,
    image: &Blocked,
    other: Other<'_>,
    activation: Activation,
    out: &mut Blocked,
) -> Result<(), SizeError> {
    let (channels, blocks, width) = (image.channels(), image.channel_blocks(), image.width());
    out.expect(
        "the result",
        (image.batch(), channels, image.height(), width),
    )?;
    let epilogue = Epilogue::new(activation.into());
    let (row, halo) = (out.row(), out.halo());
    let work = out.planes() * out.height() * width * BLOCK * WORK;
    let band = band(out.height(), out.planes(), work);
    share::run(share::cut(out, 1, band), work, |task: Task<'_>| {
        let Task {
            image: n,
            plane,
            y0,
            rows,
            mut planes,
        } = task;
        let line = |from: &Blocked, y: usize| {
            (n * blocks + plane) * from.plane() + from.origin() + y * from.row()
        };
        // A sum with no shift leaves -0 as it is.
        let (mut factors, mut shifts) = ([1.0; BLOCK], [-0.0; BLOCK]);
        let first = plane * BLOCK;
        let count = (channels - first).min(BLOCK);
        match other {
            Other::Factors(all) => {
                factors[..count].copy_from_slice(&all[n * channels + first..][..count]);
            }
            Other::Affine(all, sums) => {
                factors[..count].copy_from_slice(&all[first..][..count]);
                shifts[..count].copy_from_slice(&sums[first..][..count]);
            }
            Other::Nothing | Other::Image(_) => {}
        }
        for (y, target) in (y0..y0 + rows).zip(planes[0].chunks_exact_mut(row)) {
            level.run(Line {
                a: &image.blocks()[line(image, y)..][..width],
                b: if let Other::Image(b) = other {
                    Some(&b.blocks()[line(b, y)..][..width])
                } else {
                    None
                },
                affine: matches!(other, Other::Factors(_) | Other::Affine(..))
                    .then_some((&factors, &shifts)),
                out: &mut target[halo..halo + width],
                epilogue,
            });
        }
    });
    Ok(())
}

/// One row of 16 channels.
struct Line<'a> {
    a: &'a [Block],
    b: Option<&'a [Block]>,
    /// Factors and shifts of the channels.
    affine: Option<(&'a Block, &'a Block)>,
    out: &'a mut [Block],
    epilogue: Epilogue,
}

impl WithSimd for Line<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let low = simd.splat_f32s(self.epilogue.clamp.low);
        let high = simd.splat_f32s(self.epilogue.clamp.high);
        let (a, _) = S::as_simd_f32s(self.a.as_flattened());
        let (out, _) = S::as_mut_simd_f32s(self.out.as_flattened_mut());
        if let Some(b) = self.b {
            for ((out, a), b) in out
                .iter_mut()
                .zip(a)
                .zip(S::as_simd_f32s(b.as_flattened()).0)
            {
                *out = clamp(simd, simd.add_f32s(*a, *b), low, high);
            }
        } else if let Some((factors, shifts)) = self.affine {
            let (factors, shifts) = (S::as_simd_f32s(factors).0, S::as_simd_f32s(shifts).0);
            for (out, a) in out
                .chunks_exact_mut(factors.len())
                .zip(a.chunks_exact(factors.len()))
            {
                for (((out, a), factor), shift) in out.iter_mut().zip(a).zip(factors).zip(shifts) {
                    let y = simd.mul_add_e_f32s(*a, *factor, *shift);
                    *out = clamp(simd, y, low, high);
                }
            }
        } else {
            for (out, a) in out.iter_mut().zip(a) {
                *out = clamp(simd, *a, low, high);
            }
        }
        self.epilogue.finish(simd, self.out);
    }
}

/// Channels that move from a block of a part to a block of the result.
#[derive(Debug, Clone, Copy)]
struct Piece {
    part: usize,
    block: usize,
    from: usize,
    to: usize,
    count: usize,
}

/// Joins the channels of images, in order.
///
/// # Errors
///
/// Where the parts differ in batch, height or width from `out`, or their channels do not add up to its.
pub fn concat_channels(parts: &[&Blocked], out: &mut Blocked) -> Result<(), SizeError> {
    let channels: usize = parts.iter().map(|part| part.channels()).sum();
    check("a pixel of the parts", out.channels(), channels)?;
    for part in parts {
        part.expect(
            "a part",
            (out.batch(), part.channels(), out.height(), out.width()),
        )?;
    }
    let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); out.channel_blocks()];
    let mut start = 0;
    for (part, image) in parts.iter().enumerate() {
        let mut channel = 0;
        while channel < image.channels() {
            let (from, to) = (channel % BLOCK, (start + channel) % BLOCK);
            let count = (BLOCK - from.max(to)).min(image.channels() - channel);
            pieces[(start + channel) / BLOCK].push(Piece {
                part,
                block: channel / BLOCK,
                from,
                to,
                count,
            });
            channel += count;
        }
        start += image.channels();
    }
    let (row, halo, width) = (out.row(), out.halo(), out.width());
    let work = out.planes() * out.height() * width * BLOCK * WORK;
    let band = band(out.height(), out.planes(), work);
    share::run(share::cut(out, 1, band), work, |task: Task<'_>| {
        let Task {
            image,
            plane,
            y0,
            rows,
            mut planes,
        } = task;
        let pieces = &pieces[plane];
        let filled: usize = pieces.iter().map(|piece| piece.count).sum();
        for (y, target) in (y0..y0 + rows).zip(planes[0].chunks_exact_mut(row)) {
            let target = &mut target[halo..halo + width];
            if filled < BLOCK {
                target.fill([0.0; BLOCK]);
            }
            for &Piece {
                part,
                block,
                from,
                to,
                count,
            } in pieces
            {
                let part = parts[part];
                let start = (image * part.channel_blocks() + block) * part.plane()
                    + part.origin()
                    + y * part.row();
                let source = &part.blocks()[start..start + width];
                if count == BLOCK {
                    target.copy_from_slice(source);
                } else {
                    for (target, source) in target.iter_mut().zip(source) {
                        target[to..to + count].copy_from_slice(&source[from..from + count]);
                    }
                }
            }
        }
    });
    Ok(())
}

/// Enlarges or shrinks images to the height and width of `out`: each pixel is the one at
/// `floor(place * input side / output side)`.
///
/// # Errors
///
/// Where `out` has another batch or other channels, or the image has no pixels and `out` has.
pub fn resize_nearest(image: &Blocked, out: &mut Blocked) -> Result<(), SizeError> {
    out.expect(
        "the result",
        (image.batch(), image.channels(), out.height(), out.width()),
    )?;
    let (row, halo, height, width) = (out.row(), out.halo(), out.height(), out.width());
    if height * width > 0 {
        check(
            "a side of the image",
            1,
            (image.height() * image.width()).min(1),
        )?;
    }
    let columns: Vec<usize> = (0..width).map(|x| x * image.width() / width).collect();
    let work = out.planes() * height * width * BLOCK * WORK;
    let band = band(height, out.planes(), work);
    share::run(share::cut(out, 1, band), work, |task: Task<'_>| {
        let Task {
            image: n,
            plane,
            y0,
            rows,
            mut planes,
        } = task;
        let first = (n * image.channel_blocks() + plane) * image.plane() + image.origin();
        for (y, target) in (y0..y0 + rows).zip(planes[0].chunks_exact_mut(row)) {
            let start = first + y * image.height() / height * image.row();
            let source = &image.blocks()[start..start + image.width()];
            for (target, &x) in target[halo..halo + width].iter_mut().zip(&columns) {
                *target = source[x];
            }
        }
    });
    Ok(())
}
