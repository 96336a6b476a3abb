//! Pooling over rows and volumes, largest elements with their places, and the way back.

use crate::op;
use fx_core::Result;
use fx_core::value::DType;

use crate::error::{Fx, require, unfit};
use crate::kernels::max_places::{self, Span};
use crate::kernels::window::Axis;
use crate::kernels::{avg_pool, widen};
use crate::room;
use crate::tensor::{Pair, Sizes, Tensor, Triple};

type Data = candle_core::Tensor;

/// Refuses what is not an image of `rank` dims, with channels and without or with a batch; `may_be_empty` takes one
/// image without channels.
fn image(op: &str, x: &Tensor, rank: usize, may_be_empty: bool) -> Result<()> {
    let dims = x.dims()?;
    let lead = &dims[..dims.len().saturating_sub(rank)];
    let is_image = match lead {
        [channels] => *channels > 0 || may_be_empty,
        [_, channels] => *channels > 0,
        _ => false,
    };
    require(op, !x.is_bool() && is_image)
}

/// Kernel, stride, padding and dilation of each dim.
type Options<'a> = [&'a [usize]; 4];

fn windows(op: &str, x: &Tensor, options: Options<'_>, ceil_mode: bool) -> Result<Vec<Vec<Span>>> {
    let [kernel, stride, padding, dilation] = options;
    image(op, x, kernel.len(), false)?;
    let dims = x.dims()?;
    let lead = dims.len() - kernel.len();
    (0..kernel.len())
        .map(|i| {
            let axis = Axis {
                size: dims[lead + i],
                kernel: kernel[i],
                stride: stride[i],
                padding: padding[i],
                dilation: dilation[i],
            };
            max_places::sliding(op, axis, dims, ceil_mode).fx()
        })
        .collect()
}

fn pooled(op: &str, x: &Tensor, options: Options<'_>, ceil_mode: bool) -> Result<(Tensor, Tensor)> {
    let spans = windows(op, x, options, ceil_mode)?;
    let (y, at) = max_places::pool(op, x.data(op)?, spans).fx()?;
    Ok((Tensor::made(y), at.into()))
}

/// The maximum of each window of `x` `[N, C, L]` (or `[C, L]`); padding counts as minus infinity.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool1d")]
pub fn max_pool1d(
    x: &Tensor,
    kernel_size: usize,
    stride: usize,
    #[default(0)] padding: usize,
    #[default(1)] dilation: usize,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<Tensor> {
    let options: Options<'_> = [&[kernel_size], &[stride], &[padding], &[dilation]];
    Ok(pooled("max_pool1d", x, options, ceil_mode)?.0)
}

/// The maximum of each window of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`); padding counts as minus infinity.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool3d")]
pub fn max_pool3d(
    x: &Tensor,
    kernel_size: impl Into<Triple>,
    stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    #[default(1)] dilation: impl Into<Triple>,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<Tensor> {
    let (k, s) = (kernel_size.array(), stride.array());
    let (p, d) = (padding.array(), dilation.array());
    Ok(pooled("max_pool3d", x, [&k, &s, &p, &d], ceil_mode)?.0)
}

/// [`max_pool1d`], and the place of each maximum in its row (`int64`).
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool1d_with_indices")]
pub fn max_pool1d_with_indices(
    x: &Tensor,
    kernel_size: usize,
    stride: usize,
    #[default(0)] padding: usize,
    #[default(1)] dilation: usize,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<(Tensor, Tensor)> {
    let options: Options<'_> = [&[kernel_size], &[stride], &[padding], &[dilation]];
    pooled("max_pool1d_with_indices", x, options, ceil_mode)
}

/// [`max_pool2d`](super::max_pool2d), and the place of each maximum in its flattened image (`int64`): the first of
/// several equal ones.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 4.0, 2.0, 3.0], (1, 2, 2))?;
/// let (y, at) = ops::max_pool2d_with_indices(&x, 2, 2, 0, 1, false)?;
/// assert_eq!((y.to_vec()?, at.to_vec()?), (vec![4.0], vec![1.0]));
/// assert_eq!(ops::max_unpool2d(&y, &at, 2, 2, 0, None)?.to_vec()?, [0.0, 4.0, 0.0, 0.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool2d_with_indices")]
pub fn max_pool2d_with_indices(
    x: &Tensor,
    kernel_size: impl Into<Pair>,
    stride: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    #[default(1)] dilation: impl Into<Pair>,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<(Tensor, Tensor)> {
    let (k, s) = (kernel_size.array(), stride.array());
    let (p, d) = (padding.array(), dilation.array());
    pooled("max_pool2d_with_indices", x, [&k, &s, &p, &d], ceil_mode)
}

/// [`max_pool3d`], and the place of each maximum in its flattened volume (`int64`).
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::max_pool3d_with_indices")]
pub fn max_pool3d_with_indices(
    x: &Tensor,
    kernel_size: impl Into<Triple>,
    stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    #[default(1)] dilation: impl Into<Triple>,
    #[kw]
    #[default(false)]
    ceil_mode: bool,
) -> Result<(Tensor, Tensor)> {
    let (k, s) = (kernel_size.array(), stride.array());
    let (p, d) = (padding.array(), dilation.array());
    pooled("max_pool3d_with_indices", x, [&k, &s, &p, &d], ceil_mode)
}

fn adapted(op: &str, x: &Tensor, out: &[usize]) -> Result<(Tensor, Tensor)> {
    image(op, x, out.len(), true)?;
    let dims = x.dims()?;
    let sizes = &dims[dims.len() - out.len()..];
    require(op, !sizes.contains(&0) && x.dtype()?.is_floating_point())?;
    room::of(op, out, candle_core::DType::I64).fx()?;
    let spans = sizes
        .iter()
        .zip(out)
        .map(|(size, out)| max_places::adapted(*size, *out));
    let (y, at) = max_places::pool(op, x.data(op)?, spans.collect()).fx()?;
    Ok((Tensor::made(y), at.into()))
}

/// The maximum of each of the windows that divide images `[N, C, H, W]` (or `[C, H, W]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool2d")]
pub fn adaptive_max_pool2d(x: &Tensor, output_size: impl Into<Pair>) -> Result<Tensor> {
    Ok(adapted("adaptive_max_pool2d", x, &output_size.array())?.0)
}

/// [`adaptive_max_pool2d`], and the place of each maximum in what was flattened (`int64`).
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool2d_with_indices")]
pub fn adaptive_max_pool2d_with_indices(
    x: &Tensor,
    output_size: impl Into<Pair>,
) -> Result<(Tensor, Tensor)> {
    adapted("adaptive_max_pool2d_with_indices", x, &output_size.array())
}

/// The maximum of each of the windows that divide volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool3d")]
pub fn adaptive_max_pool3d(x: &Tensor, output_size: impl Into<Triple>) -> Result<Tensor> {
    Ok(adapted("adaptive_max_pool3d", x, &output_size.array())?.0)
}

/// [`adaptive_max_pool3d`], and the place of each maximum in what was flattened (`int64`).
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool3d_with_indices")]
pub fn adaptive_max_pool3d_with_indices(
    x: &Tensor,
    output_size: impl Into<Triple>,
) -> Result<(Tensor, Tensor)> {
    adapted("adaptive_max_pool3d_with_indices", x, &output_size.array())
}

/// The maximum of each of the windows that divide rows `[N, C, L]` (or `[C, L]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool1d")]
pub fn adaptive_max_pool1d(x: &Tensor, output_size: usize) -> Result<Tensor> {
    Ok(adapted("adaptive_max_pool1d", x, &[output_size])?.0)
}

/// [`adaptive_max_pool1d`], and the place of each maximum in its row (`int64`).
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_max_pool1d_with_indices")]
pub fn adaptive_max_pool1d_with_indices(
    x: &Tensor,
    output_size: usize,
) -> Result<(Tensor, Tensor)> {
    adapted("adaptive_max_pool1d_with_indices", x, &[output_size])
}

/// A row as an image of height 1.
fn as_row(op: &str, x: &Tensor) -> Result<Data> {
    let data = x.data(op)?;
    require(op, matches!(data.rank(), 2 | 3))?;
    data.unsqueeze(data.rank() - 1).fx()
}

/// The average of each window of `x` `[N, C, L]` (or `[C, L]`); padding counts as zeros where `count_include_pad`.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::avg_pool1d")]
pub fn avg_pool1d(
    x: &Tensor,
    kernel_size: usize,
    stride: usize,
    #[default(0)] padding: usize,
    #[default(false)] ceil_mode: bool,
    #[default(true)] count_include_pad: bool,
) -> Result<Tensor> {
    let row = as_row("avg_pool1d", x)?;
    let (kernel, stride, padding) = ((1, kernel_size), (1, stride), (0, padding));
    avg_pool::avg_pool2d(&row, kernel, stride, padding, ceil_mode, count_include_pad)
        .and_then(|y| y.squeeze(y.rank() - 2))
        .map(Tensor::made)
        .fx()
}

/// `[n, c, d, h, w]` of a volume with a batch or without.
fn volume(op: &str, x: &Data) -> Result<[usize; 5]> {
    match *x.dims() {
        [n, c, d, h, w] => Ok([n, c, d, h, w]),
        [c, d, h, w] => Ok([1, c, d, h, w]),
        _ => Err(unfit(op)),
    }
}

/// Both averages one after the other: of each slice of a volume, and then of the slices.
fn by_slices(
    op: &str,
    x: &Tensor,
    planes: impl FnOnce(&Data) -> candle_core::Result<Data>,
    depths: impl FnOnce(&Data) -> candle_core::Result<Data>,
) -> Result<Tensor> {
    let data = x.data(op)?;
    let [n, c, d, h, w] = volume(op, data)?;
    require(op, data.dtype().is_float() && c != 0)?;
    widen::widened(data, data, |data| {
        let y = planes(&data.reshape((n, c * d, h, w))?)?;
        let (_, _, oh, ow) = y.dims4()?;
        let y = depths(&y.reshape((n, c, d, oh * ow))?)?;
        let deep = y.dims()[2];
        match data.rank() {
            4 => y.reshape((c, deep, oh, ow)),
            _ => y.reshape((n, c, deep, oh, ow)),
        }
    })
    .map(Tensor::made)
    .fx()
}

/// The average of each window of `x` `[N, C, D, H, W]` (or `[C, D, H, W]`); padding counts as zeros where
/// `count_include_pad`.
///
/// # Errors
/// Returns an error if the window does not fit, or the padding exceeds half of it.
#[op(pool, member, path = "fx_nn::ops::avg_pool3d")]
pub fn avg_pool3d(
    x: &Tensor,
    kernel_size: impl Into<Triple>,
    stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    #[default(false)] ceil_mode: bool,
    #[default(true)] count_include_pad: bool,
) -> Result<Tensor> {
    let (k, s, p) = (kernel_size, stride, padding);
    by_slices(
        "avg_pool3d",
        x,
        |x| {
            avg_pool::avg_pool2d(
                x,
                (k.1, k.2),
                (s.1, s.2),
                (p.1, p.2),
                ceil_mode,
                count_include_pad,
            )
        },
        |x| {
            avg_pool::avg_pool2d(
                x,
                (k.0, 1),
                (s.0, 1),
                (p.0, 0),
                ceil_mode,
                count_include_pad,
            )
        },
    )
}

/// The average of windows that divide `x` `[N, C, L]` (or `[C, L]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_avg_pool1d")]
pub fn adaptive_avg_pool1d(x: &Tensor, output_size: usize) -> Result<Tensor> {
    let op = "adaptive_avg_pool1d";
    let row = as_row(op, x)?;
    let rows: usize = row.dims().iter().rev().skip(2).product();
    room::of(op, &[rows, output_size], row.dtype()).fx()?;
    avg_pool::adaptive_avg_pool2d(&row, (1, output_size))
        .and_then(|y| y.squeeze(y.rank() - 2))
        .map(Tensor::made)
        .fx()
}

/// The average of windows that divide `x` `[N, C, D, H, W]` (or `[C, D, H, W]`) into `output_size`.
///
/// # Errors
/// Returns an error if the shape does not fit, or the result does not fit into memory.
#[op(pool, member, path = "fx_nn::ops::adaptive_avg_pool3d")]
pub fn adaptive_avg_pool3d(x: &Tensor, output_size: impl Into<Triple>) -> Result<Tensor> {
    let op = "adaptive_avg_pool3d";
    let out = output_size;
    let data = x.data(op)?;
    let [n, c, d, ..] = volume(op, data)?;
    room::of(op, &[n, c, d.max(out.0), out.1, out.2], data.dtype()).fx()?;
    by_slices(
        op,
        x,
        |x| avg_pool::adaptive_avg_pool2d(x, (out.1, out.2)),
        |x| avg_pool::adaptive_avg_pool2d(x, (out.0, out.1.saturating_mul(out.2))),
    )
}

/// The power mean of windows without its division: averages of powers, times the size of a window, and their root.
fn power(
    x: &Tensor,
    norm: f64,
    kernel: &[usize],
    pool: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let count: usize = kernel.iter().product();
    let mean = pool(&x.pow(norm)?)?;
    let mean = match mean.requires_grad()? {
        // The same numbers; a sum of 0 has no slope, whatever its root's.
        true => {
            let size = mean.abs()?.relu()?;
            super::sign(&mean.detach()?)? * size
        }
        false => Ok(mean),
    }?;
    (mean * count as f64)?.pow(1.0 / norm)
}

/// The sum of the powers of each window of `x` `[N, C, L]` (or `[C, L]`), to the power `1 / norm_type`.
///
/// # Errors
/// Returns an error if the window does not fit.
#[op(pool, member, path = "fx_nn::ops::lp_pool1d")]
pub fn lp_pool1d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: usize,
    stride: usize,
    #[default(false)] ceil_mode: bool,
) -> Result<Tensor> {
    power(x, norm_type, &[kernel_size], |x| {
        avg_pool1d(x, kernel_size, stride, 0, ceil_mode, true)
    })
}

/// The sum of the powers of each window of `x` `[N, C, H, W]` (or `[C, H, W]`), to the power `1 / norm_type`.
///
/// # Errors
/// Returns an error if the window does not fit.
#[op(pool, member, path = "fx_nn::ops::lp_pool2d")]
pub fn lp_pool2d(
    x: &Tensor,
    norm_type: f64,
    kernel_size: impl Into<Pair>,
    stride: impl Into<Pair>,
    #[default(false)] ceil_mode: bool,
) -> Result<Tensor> {
    let kernel = kernel_size;
    power(x, norm_type, &kernel.array(), |x| {
        super::avg_pool2d(x, kernel, stride, 0, ceil_mode, true)
    })
}

fn unpooled(
    op: &str,
    x: &Tensor,
    indices: &Tensor,
    [kernel, stride, padding]: [&[usize]; 3],
    output_size: Option<Sizes>,
) -> Result<Tensor> {
    image(op, x, kernel.len(), false)?;
    let dims = x.dims()?;
    let lead = dims.len() - kernel.len();
    require(
        op,
        indices.dims()? == dims && indices.dtype()? == DType::I64,
    )?;
    let natural = (0..kernel.len()).map(|i| {
        let steps = dims[lead + i].checked_sub(1)?.checked_mul(stride[i])?;
        steps
            .checked_add(kernel[i])?
            .checked_sub(padding[i].checked_mul(2)?)
    });
    let natural: Option<Vec<usize>> = natural.collect();
    let out = match (output_size, natural) {
        (None, Some(natural)) => natural,
        (Some(given), Some(natural)) => {
            let given = given.known()?;
            let last = given.len().saturating_sub(kernel.len());
            let sizes: Vec<usize> = given[last..]
                .iter()
                .filter_map(|n| usize::try_from(*n).ok())
                .collect();
            let fits = sizes.len() == natural.len()
                && (0..sizes.len()).all(|i| sizes[i].abs_diff(natural[i]) < stride[i]);
            require(op, fits)?;
            sizes
        }
        _ => return Err(unfit(op)),
    };
    let places = match indices.dims()?.contains(&0) {
        true => Vec::new(),
        false => crate::kernels::integers::elements(indices.data(op)?).fx()?,
    };
    max_places::unpool(op, x.data(op)?, &places, &out)
        .map(|data| x.with_data(data))
        .fx()
}

/// Zeros, but for the elements of `x` at the places that [`max_pool1d_with_indices`] gave; `output_size` tells sizes
/// apart that pool to one.
///
/// # Errors
/// Returns an error if the shapes do not fit, or a place is out of range.
#[op(pool, member, path = "fx_nn::ops::max_unpool1d")]
pub fn max_unpool1d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: usize,
    stride: usize,
    #[default(0)] padding: usize,
    output_size: Option<Sizes>,
) -> Result<Tensor> {
    unpooled(
        "max_unpool1d",
        x,
        indices,
        [&[kernel_size], &[stride], &[padding]],
        output_size,
    )
}

/// Zeros, but for the elements of `x` at the places that [`max_pool2d_with_indices`] gave; `output_size` tells sizes
/// apart that pool to one.
///
/// # Errors
/// Returns an error if the shapes do not fit, or a place is out of range.
#[op(pool, member, path = "fx_nn::ops::max_unpool2d")]
pub fn max_unpool2d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: impl Into<Pair>,
    stride: impl Into<Pair>,
    #[default(0)] padding: impl Into<Pair>,
    output_size: Option<Sizes>,
) -> Result<Tensor> {
    let options = [kernel_size.array(), stride.array(), padding.array()];
    unpooled(
        "max_unpool2d",
        x,
        indices,
        [&options[0], &options[1], &options[2]],
        output_size,
    )
}

/// Zeros, but for the elements of `x` at the places that [`max_pool3d_with_indices`] gave; `output_size` tells sizes
/// apart that pool to one.
///
/// # Errors
/// Returns an error if the shapes do not fit, or a place is out of range.
#[op(pool, member, path = "fx_nn::ops::max_unpool3d")]
pub fn max_unpool3d(
    x: &Tensor,
    indices: &Tensor,
    kernel_size: impl Into<Triple>,
    stride: impl Into<Triple>,
    #[default(0)] padding: impl Into<Triple>,
    output_size: Option<Sizes>,
) -> Result<Tensor> {
    let options = [kernel_size.array(), stride.array(), padding.array()];
    unpooled(
        "max_unpool3d",
        x,
        indices,
        [&options[0], &options[1], &options[2]],
        output_size,
    )
}
