//! Windows of images as rows of a matrix, with which a convolution and both of its gradients are products of matrices, and
//! the sum of windows in the places that they are of.
//!
//! Invariant: each float is written by one thread, and sums run in one order.

use std::ops::Range;

use rayon::prelude::*;

use crate::Level;
use crate::error::{SizeError, check};
use crate::vector::plain;

/// The sizes of windows of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSizes {
    /// The number of images.
    pub batch: usize,
    /// The number of channels.
    pub channels: usize,
    /// Rows and columns of the images.
    pub image: [usize; 2],
    /// How many windows there are, below and beside each other.
    pub count: [usize; 2],
    /// Rows and columns of a window.
    pub kernel: [usize; 2],
    /// From a window to the next.
    pub stride: [usize; 2],
    /// How far the first window begins before the image.
    pub padding: [usize; 2],
    /// From an element of a window to the next.
    pub dilation: [usize; 2],
}

/// The floats of a task: about 10 us.
const TASK: usize = 16 << 10;

impl WindowSizes {
    /// The floats of all windows.
    pub fn floats(&self) -> usize {
        let [rows, columns] = self.kernel;
        self.channels * rows * columns * self.windows()
    }

    /// The windows of a channel.
    fn windows(&self) -> usize {
        self.batch * self.count[0] * self.count[1]
    }

    /// The windows whose element at `k` is inside of the image, along a dim, and where the first of them reads.
    fn inside(&self, dim: usize, k: usize) -> (Range<usize>, usize) {
        let (stride, shift) = (self.stride[dim].max(1), k * self.dilation[dim]);
        let padding = self.padding[dim];
        let first = padding.saturating_sub(shift).div_ceil(stride);
        let end = match (self.image[dim] + padding).checked_sub(shift) {
            Some(room) => room.div_ceil(stride),
            None => 0,
        };
        let end = end.min(self.count[dim]);
        let first = first.min(end);
        (first..end, (first * stride + shift).saturating_sub(padding))
    }

    fn check(&self, images: usize, windows: usize) -> Result<(), SizeError> {
        let [height, width] = self.image;
        check(
            "the images",
            self.batch * self.channels * height * width,
            images,
        )?;
        check("the windows", self.floats(), windows)
    }
}

/// The windows `[channels, kernel rows, kernel columns, batch, rows, columns]` of images
/// `[batch, channels, rows, columns]`; what is outside of an image is zero.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::conv::{WindowSizes, windows};
/// let sizes = WindowSizes { batch: 1, channels: 1, image: [1, 3], count: [1, 3], kernel: [1, 2], stride: [1, 1], padding: [0, 1], dilation: [1, 1] };
/// let mut out = [9.0; 6];
/// windows(Level::best(), sizes, &[1.0, 2.0, 3.0], &mut out)?;
/// assert_eq!(out, [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Where a slice has another length than the sizes ask for.
pub fn windows(
    level: Level,
    sizes: WindowSizes,
    x: &[f32],
    out: &mut [f32],
) -> Result<(), SizeError> {
    sizes.check(x.len(), out.len())?;
    let each = sizes.windows();
    if each == 0 || out.is_empty() {
        return Ok(());
    }
    let [k_rows, k_columns] = sizes.kernel;
    let [height, width] = sizes.image;
    let one = |(at, out): (usize, &mut [f32])| {
        let (channel, k_row, k_column) = (
            at / (k_rows * k_columns),
            at / k_columns % k_rows,
            at % k_columns,
        );
        let (rows, top) = sizes.inside(0, k_row);
        let (columns, left) = sizes.inside(1, k_column);
        let [count_rows, count_columns] = sizes.count;
        for (n, out) in out.chunks_exact_mut(count_rows * count_columns).enumerate() {
            let plane = &x[(n * sizes.channels + channel) * height * width..][..height * width];
            for (row, out) in out.chunks_exact_mut(count_columns).enumerate() {
                if !rows.contains(&row) || columns.is_empty() {
                    out.fill(0.0);
                    continue;
                }
                let y = top + (row - rows.start) * sizes.stride[0];
                let from = &plane[y * width + left..(y + 1) * width];
                out[..columns.start].fill(0.0);
                out[columns.end..].fill(0.0);
                let out = &mut out[columns.clone()];
                match sizes.stride[1] {
                    1 => out.copy_from_slice(&from[..out.len()]),
                    stride => {
                        for (out, x) in out.iter_mut().zip(from.iter().step_by(stride)) {
                            *out = *x;
                        }
                    }
                }
            }
        }
    };
    out.par_chunks_mut(each)
        .enumerate()
        .with_min_len((TASK / each).max(1))
        .for_each(|part| plain(level, || one(part)));
    Ok(())
}

/// Images `[batch, channels, rows, columns]`: at each place the sum of the elements of windows that are of it, as
/// [`windows`] gives them.
///
/// ```
/// use fx_kernels::Level;
/// use fx_kernels::conv::{WindowSizes, sum_windows};
/// let sizes = WindowSizes { batch: 1, channels: 1, image: [1, 3], count: [1, 3], kernel: [1, 2], stride: [1, 1], padding: [0, 1], dilation: [1, 1] };
/// let mut out = [0.0; 3];
/// sum_windows(Level::best(), sizes, &[7.0, 1.0, 2.0, 10.0, 20.0, 30.0], &mut out)?;
/// assert_eq!(out, [11.0, 22.0, 30.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Where a slice has another length than the sizes ask for.
pub fn sum_windows(
    level: Level,
    sizes: WindowSizes,
    windows: &[f32],
    out: &mut [f32],
) -> Result<(), SizeError> {
    sizes.check(out.len(), windows.len())?;
    let [height, width] = sizes.image;
    if out.is_empty() {
        return Ok(());
    }
    let [k_rows, k_columns] = sizes.kernel;
    let [count_rows, count_columns] = sizes.count;
    let each = sizes.windows();
    let one = |(at, out): (usize, &mut [f32])| {
        out.fill(0.0);
        let (n, channel) = (at / sizes.channels, at % sizes.channels);
        for k in 0..k_rows * k_columns {
            let (rows, top) = sizes.inside(0, k / k_columns);
            let (columns, left) = sizes.inside(1, k % k_columns);
            if columns.is_empty() {
                continue;
            }
            let own = (channel * k_rows * k_columns + k) * each + n * count_rows * count_columns;
            for row in rows.clone() {
                let from = &windows[own + row * count_columns..][columns.clone()];
                let y = top + (row - rows.start) * sizes.stride[0];
                let out = &mut out[y * width + left..(y + 1) * width];
                match sizes.stride[1] {
                    1 => {
                        for (out, x) in out.iter_mut().zip(from) {
                            *out += *x;
                        }
                    }
                    stride => {
                        for (out, x) in out.iter_mut().step_by(stride).zip(from) {
                            *out += *x;
                        }
                    }
                }
            }
        }
    };
    let work = (height * width).max(count_rows * count_columns) * k_rows * k_columns;
    out.par_chunks_mut(height * width)
        .enumerate()
        .with_min_len((TASK / work.max(1)).max(1))
        .for_each(|part| plain(level, || one(part)));
    Ok(())
}
