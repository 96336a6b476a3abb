//! Max pooling over one, two or three dims, with the place of each largest element, and the way back.

use candle_core::{DType, Result, Tensor, bail};

use super::choice::where_cond;
use super::gradient;
use super::places;
use super::scale::Scale;
use super::window::Axis;
use crate::room;

/// The positions of a window along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: usize,
    step: usize,
    count: usize,
}

/// The windows along an axis, without the padding.
///
/// # Errors
/// Returns the errors of [`Axis::windows`], and an error if the padding is more than half the
/// kernel, or the axis is empty.
pub fn sliding(op: &str, axis: Axis, shape: &[usize], ceil: bool) -> Result<Vec<Span>> {
    if axis.padding > axis.kernel / 2 || axis.size == 0 {
        bail!(
            "{op}: padding {} is at most half of kernel {}, and no dim of input {shape:?} that is pooled is empty",
            axis.padding,
            axis.kernel
        )
    }
    let count = axis.windows(op, shape, ceil)?;
    room::of(op, &[count, 3], DType::I64)?;
    Ok((0..count)
        .map(|o| {
            let from = o * axis.stride;
            // The first position that is not in the padding before the input.
            let skipped = axis.padding.saturating_sub(from).div_ceil(axis.dilation);
            let start = from + skipped * axis.dilation - axis.padding;
            let left = axis.size.saturating_sub(start).div_ceil(axis.dilation);
            Span {
                start,
                step: axis.dilation,
                count: axis.kernel.saturating_sub(skipped).min(left),
            }
        })
        .collect())
}

/// The windows that divide an axis into `out`.
pub fn adapted(size: usize, out: usize) -> Vec<Span> {
    (0..out)
        .map(|i| {
            let start = i * size / out;
            Span {
                start,
                step: 1,
                count: ((i + 1) * size).div_ceil(out) - start,
            }
        })
        .collect()
}

/// The place in its volume of the largest element of each window: the first of several, or the last
/// NaN. The place of a window without elements is the one that it would begin at.
fn largest<T: PartialOrd + Copy>(data: &[T], dims: [usize; 3], spans: &[Vec<Span>; 3]) -> Vec<i64> {
    let [_, height, width] = dims;
    let volume: usize = dims.iter().product();
    let outs: usize = spans.iter().map(Vec::len).product();
    let mut found = Vec::with_capacity(data.len() / volume.max(1) * outs);
    for data in data.chunks_exact(volume) {
        for deep in &spans[0] {
            for down in &spans[1] {
                for across in &spans[2] {
                    let mut best = (deep.start * height + down.start) * width + across.start;
                    let mut top = data.get(best).copied();
                    for i in 0..deep.count {
                        for j in 0..down.count {
                            let row =
                                (deep.start + i * deep.step) * height + down.start + j * down.step;
                            let row = &data[row * width..(row + 1) * width];
                            for k in 0..across.count {
                                let value = row[across.start + k * across.step];
                                let is_nan = value.partial_cmp(&value).is_none();
                                if is_nan || top.is_none_or(|top| value > top) {
                                    let line = deep.start + i * deep.step;
                                    best = (line * height + down.start + j * down.step) * width
                                        + across.start
                                        + k * across.step;
                                    top = Some(value);
                                }
                            }
                        }
                    }
                    found.push(best as i64);
                }
            }
        }
    }
    found
}

/// The largest element of each window of the last `rank` dims of `x`, and its place in them (`i64`).
///
/// # Errors
/// Returns an error if they do not fit into memory.
pub fn pool(op: &str, x: &Tensor, spans: Vec<Vec<Span>>) -> Result<(Tensor, Tensor)> {
    let rank = spans.len();
    let lead = x.rank() - rank;
    let outs: Vec<usize> = spans.iter().map(Vec::len).collect();
    let shape = [&x.dims()[..lead], &outs].concat();
    let count = room::of(op, &shape, DType::I64)?;
    if count == 0 {
        return Ok((
            Tensor::zeros(shape.as_slice(), x.dtype(), x.device())?,
            Tensor::zeros(shape, DType::I64, x.device())?,
        ));
    }
    let one = Span {
        start: 0,
        step: 1,
        count: 1,
    };
    let mut all = [vec![one], vec![one], vec![one]];
    let mut dims = [1; 3];
    for (i, spans) in spans.into_iter().enumerate() {
        all[3 - rank + i] = spans;
        dims[3 - rank + i] = x.dims()[lead + i];
    }
    let images: usize = x.dims()[..lead].iter().product();
    let volume: usize = dims.iter().product();
    let flat = x.contiguous()?.reshape((images, volume))?;
    let data = flat.detach().flatten_all()?;
    let at = match data.dtype() {
        DType::F64 => largest(&data.to_vec1::<f64>()?, dims, &all),
        dtype if dtype.is_float() => {
            largest(&data.to_dtype(DType::F32)?.to_vec1::<f32>()?, dims, &all)
        }
        _ => largest(&data.to_dtype(DType::I64)?.to_vec1::<i64>()?, dims, &all),
    };
    let each = count / images;
    let hollow = |o: usize| {
        let (a, b, c) = (
            o / all[2].len() / all[1].len(),
            o / all[2].len() % all[1].len(),
            o % all[2].len(),
        );
        all[0][a].count == 0 || all[1][b].count == 0 || all[2][c].count == 0
    };
    let empty: Vec<u8> = (0..each).map(|o| u8::from(hollow(o))).collect();
    let any_empty = empty.contains(&1);
    let safe = match any_empty {
        true => at.iter().map(|at| (*at).min(volume as i64 - 1)).collect(),
        false => at.clone(),
    };
    let mut y = flat.gather(&Tensor::from_vec(safe, (images, each), x.device())?, 1)?;
    if any_empty {
        let empty = Tensor::from_vec(empty, (1, each), x.device())?;
        let lowest = match x.dtype().is_float() {
            true => y.detach().ones_like()?.times(f64::NEG_INFINITY)?,
            false => bail!("{op}: a window of integers {:?} has no elements", x.dims()),
        };
        y = where_cond(&empty.broadcast_as(y.dims())?, &lowest, &y)?;
    }
    Ok((
        y.reshape(shape.as_slice())?,
        Tensor::from_vec(at, shape, x.device())?,
    ))
}

/// Zeros in the shape `out` in the last dims of `x`, with its elements at the places in `indices`.
///
/// # Errors
/// Returns an error if the shapes differ, or a place is out of range.
pub fn unpool(op: &str, x: &Tensor, indices: &[i64], out: &[usize]) -> Result<Tensor> {
    let lead = x.rank() - out.len();
    let shape = [&x.dims()[..lead], out].concat();
    room::of(op, &shape, x.dtype())?;
    let volume: usize = out.iter().product();
    let each: usize = x.dims()[lead..].iter().product();
    if let Some(at) = indices.iter().find(|at| **at < 0 || **at >= volume as i64) {
        bail!("{op}: index {at} is outside of an output of {out:?}")
    }
    let places: Vec<i64> = indices
        .iter()
        .enumerate()
        .map(|(i, at)| (i / each * volume) as i64 + at)
        .collect();
    let zeros = Tensor::zeros(shape, x.dtype(), x.device())?;
    if !x.track_op() {
        return places::put(op, &zeros, x, &places);
    }
    let put = |x: &Tensor| places::put(op, &zeros, x, &places);
    let at = places.clone();
    // Of several elements at one place each has the gradient, as in PyTorch.
    gradient::of_one("max_unpool", x, put, move |x, _, grad| {
        places::pick("max_unpool", grad, at.clone(), x.dims())
    })
}
