//! Average pooling, with windows of a fixed size or adapted to the size of the output.

use candle_core::{DType, Result, Tensor, bail};

use super::reduce;
use super::widen::widened;
use super::window::{Axis, NOTHING, image, like, pooled};
use crate::dtype::dtype_name;

/// One window along one axis: the input from `start` to `end`, and the divisor of its sum.
#[derive(Clone, Copy)]
struct Bin {
    start: usize,
    end: usize,
    count: usize,
}

/// The mean of each window of `x [c, h, w]` or `[n, c, h, w]`, as
/// `torch.nn.functional.avg_pool2d`; zeros of the padding count under `count_include_pad`.
///
/// The result is `[.., oh, ow]`.
///
/// # Errors
/// Returns an error if `x` has a different rank or an empty image, an option is 0, a padding is
/// more than half its kernel, or the window is larger than the padded input.
pub fn avg_pool2d(
    x: &Tensor,
    kernel: (usize, usize),
    stride: (usize, usize),
    padding: (usize, usize),
    ceil_mode: bool,
    count_include_pad: bool,
) -> Result<Tensor> {
    let op = "avg_pool2d";
    let image = image(op, x)?;
    let options = [kernel, stride, padding, (1, 1)];
    let (axes, [oh, ow]) = pooled(op, image.dims(), options, ceil_mode)?;
    let (n, c, h, w) = image.dims4()?;
    if !x.dtype().is_float() && x.dtype() != DType::I64 {
        bail!(
            "{op}: dtype {} is neither floating point nor int64",
            dtype_name(x.dtype())
        )
    }
    if c == 0 {
        bail!("{op}: input {:?} has no channels", x.dims())
    }
    if n == 0 {
        return like(x, Tensor::zeros((n, c, oh, ow), x.dtype(), x.device())?);
    }
    if !x.dtype().is_float() && x.dtype() != DType::I64 {
        bail!(
            "{op}: dtype {} is neither floating point nor int64",
            dtype_name(x.dtype())
        )
    }
    let inside = |axis: &Axis, o: usize| (o - 1) * axis.stride + axis.kernel <= axis.size;
    // Candle's own gradient is right only for windows that tile the whole image.
    let tiles = kernel == stride && h % kernel.0 == 0 && w % kernel.1 == 0;
    let plain = padding == (0, 0) && inside(&axes[0], oh) && inside(&axes[1], ow);
    if plain && (tiles || !x.track_op()) && x.dtype().is_float() {
        let y = widened(x, &image, |image| {
            image.avg_pool2d_with_stride(kernel, stride)
        })?;
        return like(x, y);
    }
    let bins = |axis: &Axis, out: usize| -> Vec<Bin> {
        (0..out)
            .map(|o| {
                let from = o * axis.stride;
                let to = (from + axis.kernel).min(axis.size + 2 * axis.padding);
                let start = from.saturating_sub(axis.padding).min(axis.size);
                let end = to.saturating_sub(axis.padding).min(axis.size).max(start);
                let count = if count_include_pad {
                    to - from
                } else {
                    end - start
                };
                Bin { start, end, count }
            })
            .collect()
    };
    let (rows, columns) = (bins(&axes[0], oh), bins(&axes[1], ow));
    like(
        x,
        widened(x, &image, |image| means(op, &image, &rows, &columns))?,
    )
}

/// The means of `out` bins over the image of `x [c, h, w]` or `[n, c, h, w]`, as
/// `torch.nn.functional.adaptive_avg_pool2d`: bin `i` of `o` runs from `floor(i * h / o)` to
/// `ceil((i + 1) * h / o)`, so bins overlap or repeat when `o` does not divide `h`.
///
/// The result is `[.., out.0, out.1]`.
///
/// # Errors
/// Returns an error if `x` has a different rank or an empty image.
pub fn adaptive_avg_pool2d(x: &Tensor, out: (usize, usize)) -> Result<Tensor> {
    let op = "adaptive_avg_pool2d";
    let image = image(op, x)?;
    let (n, c, h, w) = image.dims4()?;
    if h == 0 || w == 0 {
        bail!("{op}: input {:?} has an empty image", x.dims())
    }
    let (oh, ow) = out;
    if n * c * oh * ow == 0 {
        return like(x, Tensor::zeros((n, c, oh, ow), x.dtype(), x.device())?);
    }
    if !x.dtype().is_float() {
        bail!(
            "{op}: dtype {} is not floating point",
            dtype_name(x.dtype())
        )
    }
    if out == (h, w) {
        return Ok(x.clone());
    }
    if out == (1, 1) {
        return like(x, reduce::mean(&image, &[2, 3], true)?);
    }
    if h % oh == 0 && w % ow == 0 {
        let tiles = image
            .contiguous()?
            .reshape((n * c * oh, h / oh, ow, w / ow))?;
        return like(
            x,
            reduce::mean(&tiles, &[1, 3], false)?.reshape((n, c, oh, ow))?,
        );
    }
    let bins = |size: usize, out: usize| -> Vec<Bin> {
        (0..out)
            .map(|i| {
                let (start, end) = (i * size / out, ((i + 1) * size).div_ceil(out));
                Bin {
                    start,
                    end,
                    count: end - start,
                }
            })
            .collect()
    };
    let (rows, columns) = (bins(h, oh), bins(w, ow));
    like(
        x,
        widened(x, &image, |image| means(op, &image, &rows, &columns))?,
    )
}

/// The mean of each pair of bins of `x [n, c, h, w]`, one axis after the other.
fn means(op: &str, x: &Tensor, rows: &[Bin], columns: &[Bin]) -> Result<Tensor> {
    let (n, c, h, w) = x.dims4()?;
    if h.max(w) >= NOTHING as usize {
        bail!("{op}: input {:?} has too large an image", x.dims())
    }
    let (oh, ow) = (rows.len(), columns.len());
    // Rows first: whole rows are copied at once.
    let (ids, wide) = positions(rows);
    let y = x.contiguous()?.reshape((n * c, h, w))?;
    let y = y.index_select(&Tensor::from_vec(ids, oh * wide, x.device())?, 1)?;
    let y = y.reshape((n * c, oh, wide, w))?.transpose(2, 3)?;
    let y = reduce::sum(&y.contiguous()?, &[3], true)?;
    let (ids, wide) = positions(columns);
    let y = y.reshape((n * c * oh, w))?;
    let y = y.index_select(&Tensor::from_vec(ids, ow * wide, x.device())?, 1)?;
    let y = reduce::sum(&y.reshape((n, c, oh, ow, wide))?, &[4], false)?;
    let counts: Vec<f64> = rows
        .iter()
        .flat_map(|r| columns.iter().map(move |c| (r.count * c.count) as f64))
        .collect();
    let counts = Tensor::from_vec(counts, (1, 1, oh, ow), x.device())?;
    y.div(&counts.to_dtype(y.dtype())?.broadcast_as(y.dims())?)
}

/// The positions of each bin, all bins filled up with zeros to the same length.
fn positions(bins: &[Bin]) -> (Vec<u32>, usize) {
    let wide = bins.iter().map(|b| b.end - b.start).max().unwrap_or(0);
    let wide = wide.max(1);
    let ids = bins
        .iter()
        .flat_map(|b| (b.start..b.start + wide).map(|i| if i < b.end { i as u32 } else { NOTHING }))
        .collect();
    (ids, wide)
}
