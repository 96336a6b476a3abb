//! Blocks of images as columns, pixels as channels, and images read at the points of a grid.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::{blocks as kernels, grid};
use crate::tensor::{Pair, Sizes, Tensor};

/// The sliding blocks of `x` `[N, C, H, W]` (or `[C, H, W]`) as columns: `[N, C · kH · kW, blocks]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], (1, 1, 1, 3))?;
/// let y = ops::unfold(&x, (1, 2), 1, 0, 1)?;
/// assert_eq!(y.dims()?, [1, 2, 2]);
/// assert_eq!(y.to_vec()?, [1.0, 2.0, 2.0, 3.0]);
/// assert_eq!(ops::fold(&y, (1, 3), (1, 2), 1, 0, 1)?.to_vec()?, [1.0, 4.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if no block fits.
#[op(conv, member, path = "fx_nn::ops::unfold")]
pub fn unfold(
    x: &Tensor,
    kernel_size: impl Into<Pair>,
    #[default(1)] dilation: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(1)] stride: impl Into<Pair>,
) -> Result<Tensor> {
    let options = [kernel_size, dilation, padding, stride].map(Pair::tuple);
    kernels::unfold(x.data("unfold")?, options)
        .map(|data| x.with_data(data))
        .fx()
}

/// The columns of [`unfold`] added up where their blocks lie in an image of `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the tensor is not float.
#[op(conv, member, path = "fx_nn::ops::fold")]
pub fn fold(
    x: &Tensor,
    output_size: impl Into<Pair>,
    kernel_size: impl Into<Pair>,
    #[default(1)] dilation: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(1)] stride: impl Into<Pair>,
) -> Result<Tensor> {
    let op = "fold";
    require(op, x.dtype()?.is_floating_point())?;
    let options = [kernel_size, dilation, padding, stride].map(Pair::tuple);
    kernels::fold(x.data(op)?, output_size.tuple(), options)
        .map(Tensor::made)
        .fx()
}

/// Channels as pixels: `[.., C · r², H, W]` to `[.., C, H · r, W · r]`, with `r` the factor.
///
/// # Errors
/// Returns an error if the factor does not divide the channels.
#[op(view, member, path = "fx_nn::ops::pixel_shuffle")]
pub fn pixel_shuffle(x: &Tensor, upscale_factor: usize) -> Result<Tensor> {
    kernels::shuffle("pixel_shuffle", x.data("pixel_shuffle")?, upscale_factor)
        .map(|data| x.with_data(data))
        .fx()
}

/// Pixels as channels: `[.., C, H · r, W · r]` to `[.., C · r², H, W]`, with `r` the factor.
///
/// # Errors
/// Returns an error if the factor does not divide the image.
#[op(view, member, path = "fx_nn::ops::pixel_unshuffle")]
pub fn pixel_unshuffle(x: &Tensor, downscale_factor: usize) -> Result<Tensor> {
    kernels::unshuffle(
        "pixel_unshuffle",
        x.data("pixel_unshuffle")?,
        downscale_factor,
    )
    .map(|data| x.with_data(data))
    .fx()
}

/// The channels of `x` `[N, C, ..]` in another order: the first of each group, then the second of each, and so on.
///
/// # Errors
/// Returns an error if there are fewer than three dims, or `groups` does not divide the channels.
#[op(view, path = "fx_nn::ops::channel_shuffle")]
pub fn channel_shuffle(x: &Tensor, groups: usize) -> Result<Tensor> {
    kernels::channels("channel_shuffle", x.data("channel_shuffle")?, groups)
        .map(|data| x.with_data(data))
        .fx()
}

/// `x` `[N, C, H, W]` read at the points of `grid` `[N, H, W, 2]`, from -1 to 1: x across, y down; or volumes
/// `[N, C, D, H, W]` at `[N, D, H, W, 3]`.
///
/// `mode` is `"bilinear"`, `"nearest"` or `"bicubic"`, `padding_mode` `"zeros"`, `"border"` or `"reflection"`; with
/// `align_corners` -1 and 1 are the centres of the pixels at the edges, else the edges of the image.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (1, 1, 2, 2))?;
/// let centre = Tensor::zeros((1, 1, 1, 2))?;
/// assert_eq!(ops::grid_sample(&x, &centre, "bilinear", "zeros", false)?.to_vec()?, [2.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the shapes do not fit, the types differ, or a mode is unknown.
#[op(member, path = "fx_nn::ops::grid_sample")]
pub fn grid_sample(
    x: &Tensor,
    grid: &Tensor,
    #[default("bilinear")] mode: &str,
    #[default("zeros")] padding_mode: &str,
    #[default(false)] align_corners: bool,
) -> Result<Tensor> {
    let op = "grid_sample";
    let between = match mode {
        "bilinear" => grid::Between::Linear,
        "nearest" => grid::Between::Nearest,
        "bicubic" => grid::Between::Cubic,
        _ => return Err(unfit(op)),
    };
    let outside = match padding_mode {
        "zeros" => grid::Outside::Zeros,
        "border" => grid::Outside::Border,
        "reflection" => grid::Outside::Reflection,
        _ => return Err(unfit(op)),
    };
    let (data, points) = (x.data(op)?, grid.data(op)?);
    require(op, x.dtype()?.is_floating_point())?;
    crate::kernels::dim::same_dtype(op, data, points)
        .and_then(|()| grid::sample(data, points, between, outside, align_corners))
        .map(Tensor::made)
        .fx()
}

/// The points of an image of `size` `[N, C, H, W]` under the affine maps `theta` `[N, 2, 3]`, for [`grid_sample`]; of a
/// volume `[N, C, D, H, W]` under `[N, 3, 4]`.
///
/// # Errors
/// Returns an error if the shapes do not fit.
#[op(member, path = "fx_nn::ops::affine_grid")]
pub fn affine_grid(
    theta: &Tensor,
    size: impl Into<Sizes>,
    #[default(false)] align_corners: bool,
) -> Result<Tensor> {
    let op = "affine_grid";
    let sizes: Vec<usize> = size
        .known()?
        .into_iter()
        .filter_map(|n| usize::try_from(n).ok().filter(|n| *n > 0))
        .collect();
    let ([n, _, over @ ..], 2..=3, Some(maps)) = (
        sizes.as_slice(),
        sizes.len().saturating_sub(2),
        theta.dims()?.first(),
    ) else {
        return Err(unfit(op));
    };
    require(op, n == maps && theta.dtype()?.is_floating_point())?;
    grid::affine(theta.data(op)?, over, align_corners)
        .map(Tensor::made)
        .fx()
}
