//! Max pooling with padding, dilation and a gradient in every case.

use candle_core::{Result, Tensor, bail};

use super::choice::where_cond;
use super::max_places::{pool, sliding};
use super::reduce::{Side, first_extreme, has_nan};
use super::scale::Scale;
use super::window::{Axis, NOTHING, image, like, pooled};

/// The largest value of each window of `x [c, h, w]` or `[n, c, h, w]`, as
/// `torch.nn.functional.max_pool2d`; the padding never wins.
///
/// The result is `[.., oh, ow]`. The gradient goes to the first largest value of a window, row by
/// row, as in PyTorch; a NaN wins, the last of several.
///
/// # Errors
/// Returns an error if `x` has a different rank or an empty image, an option is 0, a padding is
/// more than half its kernel, or the window is larger than the padded input.
pub fn max_pool2d(
    x: &Tensor,
    kernel: (usize, usize),
    stride: (usize, usize),
    padding: (usize, usize),
    dilation: (usize, usize),
    ceil_mode: bool,
) -> Result<Tensor> {
    let op = "max_pool2d";
    let options = [kernel, stride, padding, dilation];
    let image = image(op, x)?;
    let (axes, [oh, ow]) = pooled(op, image.dims(), options, ceil_mode)?;
    let (n, c, h, w) = image.dims4()?;
    if c == 0 {
        bail!("{op}: input {:?} has no channels", x.dims())
    }
    if n == 0 {
        return like(x, Tensor::zeros((n, c, oh, ow), x.dtype(), x.device())?);
    }
    if h * w >= NOTHING as usize {
        bail!("{op}: input {:?} has too large an image", x.dims())
    }
    if !x.track_op() && dilation == (1, 1) && !has_nan(&image)? {
        return like(x, plain(&image, &axes, [oh, ow])?);
    }
    if has_nan(&image)? {
        // Of several NaN the last has the gradient.
        let spans = axes.map(|axis| sliding(op, axis, x.dims(), ceil_mode));
        let spans = spans.into_iter().collect::<Result<_>>()?;
        return like(x, pool(op, &image, spans)?.0);
    }
    let flat = image.contiguous()?.reshape((n * c, h * w))?;
    let size = kernel.0 * kernel.1;
    let (places, hollow) = places(&axes, [oh, ow]);
    let places = Tensor::from_vec(places, oh * ow * size, x.device())?;
    let seen = flat.detach().index_select(&places, 1)?;
    let best = first_extreme(&seen.reshape((n * c, oh * ow, size))?, Side::Max)?.squeeze(2)?;
    // From the position in a window to the position in the image.
    let starts: Vec<u32> = (0..oh * ow).map(|o| (o * size) as u32).collect();
    let starts = Tensor::from_vec(starts, (1, oh * ow), x.device())?;
    let best = best.broadcast_add(&starts)?.flatten_all()?;
    let best = places.index_select(&best, 0)?.reshape((n * c, oh * ow))?;
    let mut y = flat.gather(&best, 1)?;
    if let Some(hollow) = hollow {
        let hollow = Tensor::from_vec(hollow, (1, oh * ow), x.device())?;
        let lowest = y.detach().ones_like()?.times(f64::NEG_INFINITY)?;
        y = where_cond(&hollow.broadcast_as(y.dims())?, &lowest, &y)?;
    }
    like(x, y.reshape((n, c, oh, ow))?)
}

/// Without a gradient: candle's own pooling, on an image that is padded with `-inf`.
fn plain(x: &Tensor, axes: &[Axis; 2], out: [usize; 2]) -> Result<Tensor> {
    let mut x = x.clone();
    for (i, (axis, out)) in axes.iter().zip(out).enumerate() {
        let end = (out - 1) * axis.stride + axis.kernel;
        let after = end.saturating_sub(axis.padding + axis.size);
        x = lowest_around(&x, 2 + i, axis.padding, after)?;
    }
    let [rows, columns] = axes;
    x.max_pool2d_with_stride((rows.kernel, columns.kernel), (rows.stride, columns.stride))
}

fn lowest_around(x: &Tensor, dim: usize, before: usize, after: usize) -> Result<Tensor> {
    let side = |len: usize| -> Result<Tensor> {
        let mut shape = x.dims().to_vec();
        shape[dim] = len;
        let lowest = Tensor::full(f64::NEG_INFINITY, shape, x.device())?;
        lowest.to_dtype(x.dtype())
    };
    match (before, after) {
        (0, 0) => Ok(x.clone()),
        (0, _) => Tensor::cat(&[x, &side(after)?], dim),
        (_, 0) => Tensor::cat(&[&side(before)?, x], dim),
        _ => Tensor::cat(&[&side(before)?, x, &side(after)?], dim),
    }
}

/// The place in the flat image of each position of each window.
///
/// The padding is read as the first place of the window inside the image: a value seen twice
/// leaves the maximum and its first place as they are. The second value marks the windows that
/// hold nothing but padding, when there are any.
fn places(axes: &[Axis; 2], out: [usize; 2]) -> (Vec<u32>, Option<Vec<u8>>) {
    let [rows, columns] = axes;
    let list = |axis: &Axis, o: usize| -> Vec<Option<usize>> {
        (0..axis.kernel).map(|k| axis.at(o, k)).collect()
    };
    let across: Vec<_> = (0..out[1]).map(|o| list(columns, o)).collect();
    let mut places = Vec::with_capacity(out[0] * out[1] * rows.kernel * columns.kernel);
    let mut hollow = vec![0u8; out[0] * out[1]];
    for oy in 0..out[0] {
        let down = list(rows, oy);
        for (ox, across) in across.iter().enumerate() {
            let place = |y: Option<usize>, x: Option<usize>| match (y, x) {
                (Some(y), Some(x)) => Some((y * columns.size + x) as u32),
                _ => None,
            };
            let inside = place(
                down.iter().copied().flatten().next(),
                across.iter().copied().flatten().next(),
            );
            if inside.is_none() {
                hollow[oy * out[1] + ox] = 1;
            }
            let inside = inside.unwrap_or(NOTHING);
            for &y in &down {
                places.extend(across.iter().map(|&x| place(y, x).unwrap_or(inside)));
            }
        }
    }
    let any = hollow.contains(&1);
    (places, any.then_some(hollow))
}
