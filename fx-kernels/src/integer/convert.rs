//! Floats as bytes and back, between the order of PyTorch and that of pixels.
//!
//! Invariant: `[batch, channels, height, width]` on the side of floats, channels side by side on that of bytes.

use pulp::{Simd, WithSimd};

use super::bytes::{Bytes, Rounding, line, put_line};
use crate::error::{SizeError, check};
use crate::level::Level;

struct Quantize<'a> {
    x: &'a [f32],
    inverse: f32,
    rounding: Rounding,
    out: &'a mut Bytes,
}

impl WithSimd for Quantize<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Quantize {
            x,
            inverse,
            rounding,
            out,
        } = self;
        let (_, height, width, channels) = out.sizes();
        let (pixels, stride) = (height * width, out.stride());
        let each = pixels * channels;
        if each == 0 {
            return;
        }
        if pixels == 1 {
            for (row, out) in x
                .chunks_exact(channels)
                .zip(out.words_mut().chunks_exact_mut(stride))
            {
                for (x, out) in row.chunks(16).zip(out.chunks_mut(4)) {
                    let mut bytes = [0u8; 16];
                    for (to, x) in bytes.iter_mut().zip(x) {
                        *to = rounding.byte(x * inverse);
                    }
                    put_line(bytes, out);
                }
            }
            return;
        }
        let mut plane = [0u32; LINE];
        for (image, out) in x
            .chunks_exact(each)
            .zip(out.words_mut().chunks_exact_mut(pixels * stride))
        {
            for (first, out) in out.chunks_mut(LINE * stride).enumerate() {
                let first = first * LINE;
                let count = out.len() / stride;
                // A word of four channels after another.
                for word in 0..stride {
                    let plane = &mut plane[..count];
                    plane.fill(0);
                    for channel in word * 4..channels.min(word * 4 + 4) {
                        let from = &image[channel * pixels + first..][..count];
                        let shift = channel % 4 * 8;
                        for (to, x) in plane.iter_mut().zip(from) {
                            *to |= u32::from(rounding.byte(x * inverse)) << shift;
                        }
                    }
                    if stride == 1 {
                        out.copy_from_slice(plane);
                        continue;
                    }
                    for (to, made) in out.chunks_exact_mut(stride).zip(plane) {
                        to[word] = *made;
                    }
                }
            }
        }
    }
}

/// The pixels that are turned at once.
const LINE: usize = 256;

/// Floats `[batch, channels, height, width]` as bytes: `round(x * inverse)` and what the rounding says; the sizes are those of
/// `out`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, Rounding, dequantize, quantize};
/// let rounding = Rounding { zero_point: 100, low: 0, high: 255 };
/// let (x, mut q) = ([0.5f32, -1.0, 0.0, 99.0], Bytes::zeros(1, 1, 2, 2));
/// quantize(Level::best(), &x, 10.0, rounding, &mut q)?;
/// // Two pixels of two channels.
/// assert_eq!(q.words()[0].to_ne_bytes()[..2], [105, 100]);
/// assert_eq!(q.words()[1].to_ne_bytes()[..2], [90, 255]);
/// let mut back = [0.0; 4];
/// dequantize(Level::best(), &q, 0.1, 100, &mut back)?;
/// assert_eq!(back, [0.5, -1.0, 0.0, 15.5]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Returns an error if there are not as many floats as the sizes say.
pub fn quantize(
    level: Level,
    x: &[f32],
    inverse: f32,
    rounding: Rounding,
    out: &mut Bytes,
) -> Result<(), SizeError> {
    check("an image", out.pixels() * out.channels(), x.len())?;
    level.run(Quantize {
        x,
        inverse,
        rounding,
        out,
    });
    Ok(())
}

/// Bytes as the floats that they stand for, `[batch, channels, height, width]`.
///
/// # Errors
/// Returns an error if there is not as much room as the sizes say.
pub fn dequantize(
    level: Level,
    x: &Bytes,
    scale: f32,
    zero_point: u8,
    out: &mut [f32],
) -> Result<(), SizeError> {
    let (_, height, width, channels) = x.sizes();
    check("an image", x.pixels() * channels, out.len())?;
    if height * width * channels == 0 {
        return Ok(());
    }
    level.run(Dequantize {
        x,
        scale,
        zero: f32::from(zero_point),
        out,
    });
    Ok(())
}

struct Dequantize<'a> {
    x: &'a Bytes,
    scale: f32,
    zero: f32,
    out: &'a mut [f32],
}

impl WithSimd for Dequantize<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Dequantize {
            x,
            scale,
            zero,
            out,
        } = self;
        let (_, height, width, channels) = x.sizes();
        let (pixels, stride) = (height * width, x.stride());
        let images = x.words().chunks_exact(pixels * stride);
        for (image, out) in images.zip(out.chunks_exact_mut(pixels * channels)) {
            for (pixel, words) in image.chunks_exact(stride).enumerate() {
                for (block, words) in words.chunks(4).enumerate() {
                    let bytes = line(words);
                    let mut floats = [0f32; 16];
                    for i in 0..16 {
                        floats[i] = (f32::from(bytes[i]) - zero) * scale;
                    }
                    let first = block * 16;
                    let count = channels.saturating_sub(first).min(16);
                    if pixels == 1 {
                        out[first..first + count].copy_from_slice(&floats[..count]);
                        continue;
                    }
                    for (channel, x) in floats[..count].iter().enumerate() {
                        out[(first + channel) * pixels + pixel] = *x;
                    }
                }
            }
        }
    }
}
