//! Images and volumes read at the points of a grid.

use candle_core::{DType, Result, Tensor, bail};

use super::choice::where_cond;
use super::comparison;
use super::expand;
use super::pointwise::clamp;
use super::widen::widened;
use crate::room;

/// How a point between pixels is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The pixels around it, two along each dim, by how near they are.
    Linear,
    /// The nearest pixel.
    Nearest,
    /// The four pixels along each dim, by a cubic curve.
    Cubic,
}

/// The values outside the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// Zeros.
    Zeros,
    /// The pixels at the edge.
    Border,
    /// The image mirrored at its edges.
    Reflection,
}

/// `x [n, c, h, w]` at the points `grid [n, oh, ow, 2]`, from -1 to 1: x across, y down; or `x [n, c, d, h, w]` at
/// `grid [n, od, oh, ow, 3]`, with z last. With `corners` they are the centres of the pixels at the edges, else those
/// pixels' outer edges.
///
/// # Errors
/// Returns an error if the shapes do not fit.
pub fn sample(
    x: &Tensor,
    grid: &Tensor,
    between: Between,
    outside: Outside,
    corners: bool,
) -> Result<Tensor> {
    let op = "grid_sample";
    let ([n, c, sizes @ ..], [m, over @ .., parts]) = (x.dims(), grid.dims()) else {
        bail!("{op}: input {:?} and grid {:?}", x.dims(), grid.dims())
    };
    let (n, c, dims) = (*n, *c, sizes.len());
    if !(2..=3).contains(&dims) || over.len() != dims || *parts != dims {
        bail!(
            "{op}: input {:?} must be [N, C, H, W] and grid {:?} [N, H, W, 2], or [N, C, D, H, W] and [N, D, H, W, 3]",
            x.dims(),
            grid.dims()
        )
    }
    if n != *m || sizes.contains(&0) {
        bail!(
            "{op}: input {:?} must have pixels, and a grid {:?} for each image",
            x.dims(),
            grid.dims()
        )
    }
    let mut shape = vec![n, c];
    shape.extend(over);
    if room::of(op, &shape, DType::I64)? == 0 {
        return Tensor::zeros(shape.as_slice(), x.dtype(), x.device());
    }
    let points: usize = over.iter().product();
    let area: usize = sizes.iter().product();
    widened(x, (x, grid), |(x, grid)| {
        let grid = grid.contiguous()?.reshape((n, points, dims))?;
        // What is read along each dim: places, and their weights.
        let each = sizes.iter().enumerate().map(|(at, size)| {
            let unit = grid.narrow(2, dims - 1 - at, 1)?.squeeze(2)?;
            let half = *size as f64 / 2.0;
            let place = match corners {
                true => unit.affine((*size as f64 - 1.0) / 2.0, (*size as f64 - 1.0) / 2.0)?,
                false => unit.affine(half, half - 0.5)?,
            };
            read(&place, *size, between, outside, corners)
        });
        let each = each.collect::<Result<Vec<Vec<Read>>>>()?;
        let flat = x.contiguous()?.reshape((n, c, area))?;
        let count: usize = each.iter().map(Vec::len).product();
        let mut sum: Option<Tensor> = None;
        for mut number in 0..count {
            // The places of one pixel for each point; the last dim changes first.
            let mut places = Vec::with_capacity(dims);
            let mut weight: Option<Tensor> = None;
            for reads in each.iter().rev() {
                let (place, share) = &reads[number % reads.len()];
                number /= reads.len();
                places.push(place.as_slice());
                weight = match (weight, share) {
                    (Some(weight), Some(share)) => Some(weight.mul(share)?),
                    (weight, share) => weight.or_else(|| share.clone()),
                };
            }
            places.reverse();
            let mut part = pixel(&flat, &places, sizes)?;
            if let Some(weight) = weight {
                part = part.mul(&expand::to(&weight.unsqueeze(1)?, part.dims())?)?;
            }
            sum = Some(match sum {
                Some(sum) => sum.add(&part)?,
                None => part,
            });
        }
        match sum {
            Some(sum) => sum.reshape(shape.as_slice()),
            None => bail!("{op}: there are no pixels around a point"),
        }
    })
}

/// A place along a dim for each point, and its weight; no weight is 1.
type Read = (Vec<f64>, Option<Tensor>);

/// What is read along a dim of `size`, for the places `place [n, points]`.
fn read(
    place: &Tensor,
    size: usize,
    between: Between,
    outside: Outside,
    corners: bool,
) -> Result<Vec<Read>> {
    Ok(match between {
        Between::Nearest => {
            let place = inside(place, size, outside, corners)?;
            let near = values(&place)?.into_iter().map(f64::round_ties_even);
            vec![(near.collect(), None)]
        }
        Between::Linear => {
            let place = inside(place, size, outside, corners)?;
            let low = place.detach().floor()?;
            let high = low.affine(1.0, 1.0)?;
            // The nearness of each side: the distance from the other one.
            vec![
                (values(&low)?, Some(high.sub(&place)?)),
                (values(&high)?, Some(place.sub(&low)?)),
            ]
        }
        Between::Cubic => {
            let low = place.detach().floor()?;
            let way = place.sub(&low)?;
            let back = way.affine(-1.0, 1.0)?;
            let weights = [far(&way)?, near(&way)?, near(&back)?, far(&back)?];
            let mut all = Vec::with_capacity(4);
            for (at, weight) in weights.into_iter().enumerate() {
                let beside = inside(&low.affine(1.0, at as f64 - 1.0)?, size, outside, corners)?;
                all.push((values(&beside)?, Some(weight)));
            }
            all
        }
    })
}

/// The curve through the pixels, as PyTorch has it.
const SHARP: f64 = -0.75;

/// The weight of a pixel that is `way` from the point, below 1.
fn near(way: &Tensor) -> Result<Tensor> {
    let inner = way.affine(SHARP + 2.0, -(SHARP + 3.0))?;
    inner.mul(way)?.mul(way)?.affine(1.0, 1.0)
}

/// The weight of a pixel that is 1 more than `way` from the point.
fn far(way: &Tensor) -> Result<Tensor> {
    let way = way.affine(1.0, 1.0)?;
    let inner = way.affine(SHARP, -5.0 * SHARP)?;
    let inner = inner.mul(&way)?.affine(1.0, 8.0 * SHARP)?;
    inner.mul(&way)?.affine(1.0, -4.0 * SHARP)
}

/// The elements, as numbers.
fn values(x: &Tensor) -> Result<Vec<f64>> {
    x.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// Places moved into the image by the rule for places outside.
fn inside(place: &Tensor, size: usize, outside: Outside, corners: bool) -> Result<Tensor> {
    let last = size as f64 - 1.0;
    match outside {
        Outside::Zeros => Ok(place.clone()),
        Outside::Border => bounded(place, last),
        Outside::Reflection => {
            let (low, span) = match corners {
                true => (0.0, last),
                false => (-0.5, size as f64),
            };
            if span == 0.0 {
                return place.zeros_like();
            }
            // The distance from the first edge, and how often the image was mirrored on the way.
            let from: Vec<f64> = place
                .detach()
                .to_dtype(DType::F64)?
                .flatten_all()?
                .to_vec1()?;
            let each = |x: &f64| {
                let distance = x - low;
                let sign = if distance < 0.0 { -1.0 } else { 1.0 };
                let flips = (distance.abs() / span).floor();
                let (scale, shift) = match flips.rem_euclid(2.0) == 0.0 {
                    true => (sign, low - flips * span),
                    false => (-sign, low + (flips + 1.0) * span),
                };
                // x is scale * place + shift; only place is differentiated.
                (scale, shift - scale * low)
            };
            let (scales, shifts): (Vec<f64>, Vec<f64>) = from.iter().map(each).unzip();
            let tensor = |values: Vec<f64>| {
                Tensor::from_vec(values, place.dims(), place.device())?.to_dtype(place.dtype())
            };
            bounded(&place.mul(&tensor(scales)?)?.add(&tensor(shifts)?)?, last)
        }
    }
}

/// Places from 0 to `last`; NaN is 0.
fn bounded(place: &Tensor, last: f64) -> Result<Tensor> {
    let fixed = place.detach();
    let place = where_cond(
        &comparison::eq(&fixed, &fixed)?,
        place,
        &fixed.zeros_like()?,
    )?;
    clamp(&place, Some(0.0), Some(last))
}

/// The pixels of `flat [n, c, area]` at whole places along dims of `sizes`, `n` times as many as points each:
/// `[n, c, points]`, zeros outside.
fn pixel(flat: &Tensor, places: &[&[f64]], sizes: &[usize]) -> Result<Tensor> {
    let (n, c, _) = flat.dims3()?;
    let count = places.first().map_or(0, |all| all.len());
    let ids = (0..count).map(|point| {
        let mut id = 0;
        for (along, size) in places.iter().zip(sizes) {
            let place = along[point];
            if !(place >= 0.0 && place < *size as f64) {
                return super::window::NOTHING;
            }
            id = id * size + place as usize;
        }
        id as u32
    });
    let points = count.checked_div(n).unwrap_or(0);
    let ids = Tensor::from_vec(ids.collect::<Vec<u32>>(), (n, 1, points), flat.device())?;
    flat.gather(&ids.broadcast_as((n, c, points))?.contiguous()?, 2)
}

/// The points of `size` under the maps `theta [n, 2, 3]`: `[n, h, w, 2]`; of a volume under `theta [n, 3, 4]`:
/// `[n, d, h, w, 3]`.
///
/// # Errors
/// Returns an error if the shape differs.
pub fn affine(theta: &Tensor, size: &[usize], corners: bool) -> Result<Tensor> {
    let op = "affine_grid";
    let dims = size.len();
    let n = match theta.dims() {
        &[n, rows, columns] if rows == dims && columns == dims + 1 => n,
        other => bail!("{op}: theta {other:?} must be [N, {dims}, {}]", dims + 1),
    };
    let mut shape = vec![n];
    shape.extend(size);
    shape.push(dims);
    room::of(op, &shape, theta.dtype())?;
    let unit = |i: usize, size: usize| match (corners, size) {
        (_, 1) => 0.0,
        (true, _) => -1.0 + 2.0 * i as f64 / (size as f64 - 1.0),
        (false, _) => (2.0 * i as f64 + 1.0) / size as f64 - 1.0,
    };
    let count: usize = size.iter().product();
    let mut points: Vec<f64> = Vec::with_capacity(count * (dims + 1));
    for mut number in 0..count {
        // Across first.
        for size in size.iter().rev() {
            points.push(unit(number % size, *size));
            number /= size;
        }
        points.push(1.0);
    }
    let points = Tensor::from_vec(points, (count, dims + 1), theta.device())?;
    widened(theta, theta, |theta| {
        let points = points.to_dtype(theta.dtype())?;
        super::matmul::matmul(&points, &theta.transpose(1, 2)?)?.reshape(shape.as_slice())
    })
}
