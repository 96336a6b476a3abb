//! Images read at the points of a grid.

use candle_core::{DType, Result, Tensor, bail};

use super::expand;
use super::pointwise::clamp;
use super::widen::widened;
use crate::room;

/// How a point between pixels is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The four pixels around it, by how near they are.
    Bilinear,
    /// The nearest pixel.
    Nearest,
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

/// `x [n, c, h, w]` at the points `grid [n, oh, ow, 2]`, from -1 to 1: x across, y down. With `corners` they are the
/// centres of the pixels at the edges, else those pixels' outer edges.
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
    let (&[n, c, h, w], &[m, oh, ow, 2]) = (x.dims(), grid.dims()) else {
        bail!(
            "{op}: input {:?} must be [N, C, H, W] and grid {:?} [N, H, W, 2]",
            x.dims(),
            grid.dims()
        )
    };
    if n != m || h == 0 || w == 0 {
        bail!(
            "{op}: input {:?} must have pixels, and a grid {:?} for each image",
            x.dims(),
            grid.dims()
        )
    }
    let shape = [n, c, oh, ow];
    if room::of(op, &shape, DType::I64)? == 0 {
        return Tensor::zeros(shape.as_slice(), x.dtype(), x.device());
    }
    widened(x, (x, grid), |(x, grid)| {
        let points = grid.contiguous()?.reshape((n, oh * ow, 2))?;
        let place = |axis: usize, size: usize| -> Result<Tensor> {
            let unit = points.narrow(2, axis, 1)?.squeeze(2)?;
            let half = size as f64 / 2.0;
            let place = match corners {
                true => unit.affine((size as f64 - 1.0) / 2.0, (size as f64 - 1.0) / 2.0)?,
                false => unit.affine(half, half - 0.5)?,
            };
            inside(&place, size, outside, corners)
        };
        let (across, down) = (place(0, w)?, place(1, h)?);
        let flat = x.contiguous()?.reshape((n, c, h * w))?;
        let read = |columns: &Tensor, rows: &Tensor| pixel(&flat, columns, rows, (h, w));
        let y = match between {
            Between::Nearest => {
                let (columns, rows) = (even(&across)?, even(&down)?);
                read(&columns, &rows)?
            }
            Between::Bilinear => {
                let (left, top) = (across.detach().floor()?, down.detach().floor()?);
                let (right, bottom) = (left.affine(1.0, 1.0)?, top.affine(1.0, 1.0)?);
                // The nearness of each side: the distance from the other one.
                let near = [right.sub(&across)?, across.sub(&left)?];
                let close = [bottom.sub(&down)?, down.sub(&top)?];
                let mut sum: Option<Tensor> = None;
                for (j, row) in [&top, &bottom].into_iter().enumerate() {
                    for (i, column) in [&left, &right].into_iter().enumerate() {
                        let weight = near[i].mul(&close[j])?.unsqueeze(1)?;
                        let part = read(column, row)?;
                        let part = part.mul(&expand::to(&weight, part.dims())?)?;
                        sum = Some(match sum {
                            Some(sum) => sum.add(&part)?,
                            None => part,
                        });
                    }
                }
                match sum {
                    Some(sum) => sum,
                    None => bail!("{op}: there are no corners"),
                }
            }
        };
        y.reshape(shape.as_slice())
    })
}

/// Places rounded to whole ones, halves to even ones.
fn even(x: &Tensor) -> Result<Tensor> {
    let values: Vec<f64> = x.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()?;
    let values: Vec<f64> = values.into_iter().map(f64::round_ties_even).collect();
    Tensor::from_vec(values, x.dims(), x.device())?.to_dtype(x.dtype())
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
    let place = fixed.eq(&fixed)?.where_cond(place, &fixed.zeros_like()?)?;
    clamp(&place, Some(0.0), Some(last))
}

/// The pixels of `flat [n, c, h * w]` at whole places `[n, points]`: `[n, c, points]`, zeros outside.
fn pixel(flat: &Tensor, columns: &Tensor, rows: &Tensor, (h, w): (usize, usize)) -> Result<Tensor> {
    let (n, c, _) = flat.dims3()?;
    let points = columns.dims()[1];
    let values = |t: &Tensor| -> Result<Vec<f64>> {
        t.detach().to_dtype(DType::F64)?.flatten_all()?.to_vec1()
    };
    let (columns, rows) = (values(columns)?, values(rows)?);
    let ids: Vec<u32> = columns
        .iter()
        .zip(rows)
        .map(|(column, row)| {
            let is_in = *column >= 0.0 && *column < w as f64 && row >= 0.0 && row < h as f64;
            match is_in {
                true => (row as usize * w + *column as usize) as u32,
                false => super::window::NOTHING,
            }
        })
        .collect();
    let ids = Tensor::from_vec(ids, (n, 1, points), flat.device())?;
    flat.gather(&ids.broadcast_as((n, c, points))?.contiguous()?, 2)
}

/// The points of `size` under the maps `theta [n, 2, 3]`: `[n, h, w, 2]`.
///
/// # Errors
/// Returns an error if the shape differs.
pub fn affine(theta: &Tensor, size: (usize, usize), corners: bool) -> Result<Tensor> {
    let op = "affine_grid";
    let &[n, 2, 3] = theta.dims() else {
        bail!("{op}: theta {:?} must be [N, 2, 3]", theta.dims())
    };
    let (h, w) = size;
    room::of(op, &[n, h, w, 2], theta.dtype())?;
    let unit = |i: usize, size: usize| match (corners, size) {
        (_, 1) => 0.0,
        (true, _) => -1.0 + 2.0 * i as f64 / (size as f64 - 1.0),
        (false, _) => (2.0 * i as f64 + 1.0) / size as f64 - 1.0,
    };
    let points: Vec<f64> = (0..h)
        .flat_map(|y| (0..w).flat_map(move |x| [unit(x, w), unit(y, h), 1.0]))
        .collect();
    let points = Tensor::from_vec(points, (h * w, 3), theta.device())?;
    widened(theta, theta, |theta| {
        let points = points.to_dtype(theta.dtype())?;
        super::matmul::matmul(&points, &theta.transpose(1, 2)?)?.reshape((n, h, w, 2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, near, varied};
    use candle_core::Device;

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[[[1f64, 2.], [3., 4.]]]], &Device::Cpu)?;
        let grid = Tensor::new(&[[[[0f64, 0.], [-1., -1.], [3., 0.]]]], &Device::Cpu)?;
        let of = |between, outside, corners| sample(&x, &grid, between, outside, corners);
        near(
            &of(Between::Bilinear, Outside::Zeros, true)?,
            &[2.5, 1., 0.],
        )?;
        near(
            &of(Between::Bilinear, Outside::Border, true)?,
            &[2.5, 1., 3.],
        )?;
        near(
            &of(Between::Bilinear, Outside::Zeros, false)?,
            &[2.5, 0.25, 0.],
        )?;
        near(
            &of(Between::Nearest, Outside::Border, false)?,
            &[1., 1., 2.],
        )?;
        near(
            &of(Between::Bilinear, Outside::Reflection, true)?,
            &[2.5, 1., 2.],
        )?;
        let theta = Tensor::new(&[[[1f64, 0., 0.], [0., 1., 0.]]], &Device::Cpu)?;
        near(&affine(&theta, (1, 2), true)?, &[-1., 0., 1., 0.])?;
        near(&affine(&theta, (1, 2), false)?, &[-0.5, 0., 0.5, 0.])
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let inputs = [
            varied(&[2, 2, 3, 4])?,
            varied(&[2, 2, 3, 2])?.affine(1.4, 0.03)?,
        ];
        for outside in [Outside::Zeros, Outside::Border, Outside::Reflection] {
            for corners in [true, false] {
                check(&inputs, |v| {
                    sample(&v[0], &v[1], Between::Bilinear, outside, corners)
                })?;
            }
        }
        check(&inputs[..1], |v| {
            sample(&v[0], &inputs[1], Between::Nearest, Outside::Zeros, false)
        })?;
        check(&[varied(&[2, 2, 3])?], |v| affine(&v[0], (2, 3), false))
    }
}
