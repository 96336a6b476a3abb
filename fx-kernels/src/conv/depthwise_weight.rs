//! The gradient of the weights of a depthwise convolution.
//!
//! Invariant: each weight is summed by one thread, in the order of images, rows and columns.

use rayon::prelude::*;

use crate::error::{SizeError, check};
use crate::vector;

/// The sizes of a depthwise convolution whose weights get a gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthwiseSizes {
    /// The number of images.
    pub batch: usize,
    /// The number of channels, of the images and of the result.
    pub channels: usize,
    /// Rows and columns of the images, with their padding.
    pub image: [usize; 2],
    /// Rows and columns of the result.
    pub out: [usize; 2],
    /// Rows and columns of the windows.
    pub kernel: [usize; 2],
    /// The steps of the windows.
    pub stride: [usize; 2],
    /// The steps between elements of a window.
    pub dilation: [usize; 2],
}

/// The gradient `[channels, kernel rows, kernel columns]` of the weights, from padded images
/// `[batch, channels, rows, columns]` and the gradient of the result.
///
/// ```
/// use fx_kernels::conv::{DepthwiseSizes, depthwise_weight};
/// let sizes = DepthwiseSizes { batch: 1, channels: 1, image: [2, 2], out: [1, 2], kernel: [2, 1], stride: [1, 1], dilation: [1, 1] };
/// let mut out = [0.0; 2];
/// depthwise_weight(sizes, &[1.0, 2.0, 3.0, 4.0], &[1.0, 10.0], &mut out)?;
/// assert_eq!(out, [21.0, 43.0]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
///
/// # Errors
/// Where a slice has another length than the sizes ask for, or a window leaves the image.
pub fn depthwise_weight(
    sizes: DepthwiseSizes,
    x: &[f32],
    grad: &[f32],
    out: &mut [f32],
) -> Result<(), SizeError> {
    let DepthwiseSizes {
        batch,
        channels,
        image: [height, width],
        out: [rows, columns],
        kernel: [k_rows, k_columns],
        stride,
        dilation,
    } = sizes;
    check("the images", batch * channels * height * width, x.len())?;
    check(
        "the gradient",
        batch * channels * rows * columns,
        grad.len(),
    )?;
    check("the weights", channels * k_rows * k_columns, out.len())?;
    if grad.is_empty() || out.is_empty() {
        out.fill(0.0);
        return Ok(());
    }
    let reach = |out: usize, kernel: usize, at: usize| {
        (out - 1) * stride[at] + (kernel - 1) * dilation[at] + 1
    };
    let (needed, wide) = (reach(rows, k_rows, 0), reach(columns, k_columns, 1));
    check("the rows of an image", needed.max(height), height)?;
    check("the columns of an image", wide.max(width), width)?;
    out.par_chunks_mut(k_rows * k_columns)
        .enumerate()
        .for_each(|(channel, out)| {
            out.fill(0.0);
            for n in 0..batch {
                let plane = (n * channels + channel) * height * width;
                let own = (n * channels + channel) * rows * columns;
                for (row, grad) in grad[own..][..rows * columns]
                    .chunks_exact(columns)
                    .enumerate()
                {
                    for (k_row, out) in out.chunks_exact_mut(k_columns).enumerate() {
                        let y = row * stride[0] + k_row * dilation[0];
                        let x = &x[plane + y * width..][..width];
                        for (k_column, out) in out.iter_mut().enumerate() {
                            *out += dot(&x[k_column * dilation[1]..], grad, stride[1]);
                        }
                    }
                }
            }
        });
    Ok(())
}

/// The sum of products of `grad` with every `step`th of `x`.
fn dot(x: &[f32], grad: &[f32], step: usize) -> f32 {
    match step {
        1 => vector::dot(&x[..grad.len()], grad),
        _ => x.iter().step_by(step).zip(grad).map(|(x, g)| x * g).sum(),
    }
}
