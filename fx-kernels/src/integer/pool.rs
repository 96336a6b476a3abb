//! Pools of bytes: the largest of a window, and means.
//!
//! Invariant: a window beside the image has no bytes for what is outside; a mean is one product of an exact sum.

use pulp::{Simd, WithSimd};

use super::bytes::{Bytes, Rounding, line, put_line};
use crate::error::{SizeError, check};
use crate::level::Level;

/// The windows of a pool, as PyTorch has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The rows and pixels of a window.
    pub kernel: [usize; 2],
    /// How far windows are apart.
    pub stride: [usize; 2],
    /// The rows and pixels that windows reach beyond the image.
    pub padding: [usize; 2],
    /// Whether the last window may reach further, as long as it begins inside (PyTorch's `ceil_mode`).
    pub ceil: bool,
}

impl Windows {
    /// How many windows there are along the sides of an image; `None` if none fits.
    pub fn out_size(&self, height: usize, width: usize) -> Option<(usize, usize)> {
        let side = |size: usize, at: usize| {
            let stride = self.stride[at].max(1);
            let room = (size + 2 * self.padding[at]).checked_sub(self.kernel[at])?;
            let more = self.ceil && !room.is_multiple_of(stride);
            let begins = (room / stride + 1) * stride < size + self.padding[at];
            Some(room / stride + 1 + usize::from(more && begins))
        };
        Some((side(height, 0)?, side(width, 1)?))
    }

    /// The pixels of the image that a window has along a side.
    fn span(&self, at: usize, index: usize, size: usize) -> std::ops::Range<usize> {
        let from = (index * self.stride[at]).saturating_sub(self.padding[at]);
        let to = (index * self.stride[at] + self.kernel[at]).saturating_sub(self.padding[at]);
        from..to.min(size)
    }
}

/// What a pool makes of its windows.
#[derive(Clone, Copy)]
enum Of {
    Most,
    /// The scale of a sum whose zero point is that of each byte, and what the sum is divided by: a number, or the bytes that
    /// it has.
    Mean {
        zero_point: u8,
        scale: f32,
        over: Option<usize>,
        rounding: Rounding,
    },
}

struct Row<'a> {
    x: &'a Bytes,
    windows: Windows,
    of: Of,
    image: usize,
    y: usize,
    out: &'a mut [u32],
}

/// The words that are computed at once.
const LANES: usize = 16;

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Row {
            x,
            windows,
            of,
            image,
            y,
            out,
        } = self;
        let stride = x.stride();
        let rows = windows.span(0, y, x.height());
        for (at, out) in out.chunks_exact_mut(stride).enumerate() {
            let pixels = windows.span(1, at, x.width());
            for (block, out) in out.chunks_mut(LANES / 4).enumerate() {
                let mut most = [0u8; LANES];
                let mut sums = [0i32; LANES];
                for row in rows.clone() {
                    for pixel in pixels.clone() {
                        let first = ((image * x.height() + row) * x.width() + pixel) * stride;
                        let first = first + block * LANES / 4;
                        let bytes = line(&x.words()[first..first + out.len()]);
                        match of {
                            Of::Most => {
                                for i in 0..LANES {
                                    most[i] = most[i].max(bytes[i]);
                                }
                            }
                            Of::Mean { .. } => {
                                for i in 0..LANES {
                                    sums[i] += i32::from(bytes[i]);
                                }
                            }
                        }
                    }
                }
                if let Of::Mean {
                    zero_point,
                    scale,
                    over,
                    rounding,
                } = of
                {
                    let count = rows.len() * pixels.len();
                    let zero = i32::from(zero_point) * count as i32;
                    let scale = scale / over.unwrap_or(count) as f32;
                    for i in 0..LANES {
                        most[i] = rounding.byte((sums[i] - zero) as f32 * scale);
                    }
                }
                put_line(most, out);
            }
        }
    }
}

fn pooled(
    level: Level,
    x: &Bytes,
    windows: Windows,
    of: Of,
    words: Vec<u32>,
) -> Result<Bytes, SizeError> {
    let Some((height, width)) = windows.out_size(x.height(), x.width()) else {
        check("an image", windows.kernel[0], x.height())?;
        check("a row", windows.kernel[1], x.width())?;
        return Ok(Bytes::reusing(words, (x.batch(), 0, 0, x.channels())));
    };
    let mut out = Bytes::reusing(words, (x.batch(), height, width, x.channels()));
    let work = out.words().len() * windows.kernel[0] * windows.kernel[1];
    let row = |(at, out): (usize, &mut [u32])| {
        let (image, y) = (at / height, at % height);
        level.run(Row {
            x,
            windows,
            of,
            image,
            y,
            out,
        });
    };
    out.each_row(work >= 1 << 15, row);
    Ok(out)
}

/// The largest byte of each window, in the memory of `words`.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::integer::{Bytes, Windows, max_pool};
/// let mut x = Bytes::zeros(1, 2, 2, 1);
/// for (word, byte) in x.words_mut().iter_mut().zip([3u8, 9, 4, 1]) {
///     *word = u32::from_ne_bytes([byte, 0, 0, 0]);
/// }
/// let windows = Windows { kernel: [2, 2], stride: [2, 2], padding: [0, 0], ceil: false };
/// let most = max_pool(Level::best(), &x, windows, Vec::new())?;
/// assert_eq!(most.words()[0].to_ne_bytes()[0], 9);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Returns an error if no window fits.
pub fn max_pool(
    level: Level,
    x: &Bytes,
    windows: Windows,
    words: Vec<u32>,
) -> Result<Bytes, SizeError> {
    pooled(level, x, windows, Of::Most, words)
}

/// The mean of each window in steps of the result, in the memory of `words`: `round(sum * scale / count)`, where the count is
/// that of a whole window, or that of the bytes in it.
///
/// # Errors
/// Returns an error if no window fits.
pub fn average_pool(
    level: Level,
    x: &Bytes,
    windows: Windows,
    (scale, zero_point, counts_padding): (f32, u8, bool),
    rounding: Rounding,
    words: Vec<u32>,
) -> Result<Bytes, SizeError> {
    let of = Of::Mean {
        zero_point,
        scale,
        over: counts_padding.then_some(windows.kernel[0] * windows.kernel[1]),
        rounding,
    };
    pooled(level, x, windows, of, words)
}
