//! Resampling of images to other sizes: nearest and bilinear.

use candle_core::{Result, Tensor, bail};

use super::widen::widened;
use super::window::{image, like};
use crate::room;

/// The two positions that a place in the result reads along one axis, and the weight of the second.
struct Tap {
    first: usize,
    second: usize,
    weight: f64,
}

/// `x [n, c, h, w]` or `[c, h, w]` resampled to `size`: each place takes its nearest pixel.
///
/// `scale` is the input's size over the result's, along each axis.
///
/// # Errors
/// Returns an error if `x` has a different rank, or is empty where the result is not.
pub fn nearest(x: &Tensor, size: (usize, usize), scale: (f64, f64)) -> Result<Tensor> {
    let op = "interpolate";
    let image = checked(op, x, size)?;
    let (n, c, h, w) = image.dims4()?;
    if n * c == 0 {
        return like(
            x,
            Tensor::zeros((n, c, size.0, size.1), x.dtype(), x.device())?,
        );
    }
    let at = |i: usize, scale: f64, size: usize| {
        let place = (i as f64 * scale).floor() as usize;
        place.min(size - 1) as u32
    };
    let rows: Vec<u32> = (0..size.0).map(|i| at(i, scale.0, h)).collect();
    let columns: Vec<u32> = (0..size.1).map(|i| at(i, scale.1, w)).collect();
    let rows = Tensor::from_vec(rows, size.0, x.device())?;
    let columns = Tensor::from_vec(columns, size.1, x.device())?;
    let y = image.contiguous()?.index_select(&rows, 2)?;
    like(x, y.index_select(&columns, 3)?)
}

/// `x [n, c, h, w]` or `[c, h, w]` resampled to `size`, linearly along each axis.
///
/// Under `align_corners` the corners of both images are the same points; else their edges are.
///
/// # Errors
/// Returns an error if `x` has a different rank, or is empty where the result is not.
pub fn bilinear(
    x: &Tensor,
    size: (usize, usize),
    scale: (f64, f64),
    align_corners: bool,
) -> Result<Tensor> {
    let op = "interpolate";
    let image = checked(op, x, size)?;
    let (n, c, h, w) = image.dims4()?;
    if !x.dtype().is_float() {
        bail!(
            "{op}: bilinear needs a floating point input, not {:?}",
            x.dtype()
        )
    }
    if n * c == 0 {
        return like(
            x,
            Tensor::zeros((n, c, size.0, size.1), x.dtype(), x.device())?,
        );
    }
    let y = widened(x, &image, |image| {
        let rows = taps(h, size.0, scale.0, align_corners);
        let y = along(&image.contiguous()?, 2, &rows)?;
        along(&y, 3, &taps(w, size.1, scale.1, align_corners))
    })?;
    like(x, y)
}

fn checked(op: &str, x: &Tensor, size: (usize, usize)) -> Result<Tensor> {
    let image = image(op, x)?;
    let (_, _, h, w) = image.dims4()?;
    if [h, w, size.0, size.1].contains(&0) {
        bail!(
            "{op}: input {:?} and result {size:?} must have an image of at least one pixel",
            x.dims()
        )
    }
    // Rows first, then columns.
    let (n, c, _, _) = image.dims4()?;
    room::of(op, &[n, c, size.0, w], x.dtype())?;
    room::of(op, &[n, c, size.0, size.1], x.dtype())?;
    Ok(image)
}

fn taps(size: usize, out: usize, scale: f64, align_corners: bool) -> Vec<Tap> {
    (0..out)
        .map(|i| {
            if size == out {
                // The size stays: no second position is read.
                return Tap {
                    first: i,
                    second: i,
                    weight: 0.0,
                };
            }
            let place = if align_corners {
                let steps = (out - 1).max(1) as f64;
                i as f64 * (size - 1) as f64 / steps
            } else {
                ((i as f64 + 0.5) * scale - 0.5).max(0.0)
            };
            let first = (place.floor() as usize).min(size - 1);
            Tap {
                first,
                second: (first + 1).min(size - 1),
                weight: (place - first as f64).clamp(0.0, 1.0),
            }
        })
        .collect()
}

fn along(x: &Tensor, dim: usize, taps: &[Tap]) -> Result<Tensor> {
    let ids = |place: fn(&Tap) -> usize| {
        let ids: Vec<u32> = taps.iter().map(|tap| place(tap) as u32).collect();
        Tensor::from_vec(ids, taps.len(), x.device())
    };
    let mut shape = vec![1; x.rank()];
    shape[dim] = taps.len();
    let weights: Vec<f64> = taps.iter().map(|tap| tap.weight).collect();
    let weights = Tensor::from_vec(weights, shape, x.device())?.to_dtype(x.dtype())?;
    let first = x.index_select(&ids(|tap| tap.first)?, dim)?;
    let second = x.index_select(&ids(|tap| tap.second)?, dim)?;
    let weights = weights.broadcast_as(first.dims())?;
    let rest = weights.affine(-1.0, 1.0)?;
    first.mul(&rest)?.add(&second.mul(&weights)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{check, near, strided, varied};
    use candle_core::Device;

    #[test]
    fn small_numbers() -> Result<()> {
        let x = Tensor::new(&[[[1f64, 2.], [3., 4.]]], &Device::Cpu)?;
        for x in [x.clone(), strided(&x)?] {
            let y = nearest(&x, (4, 4), (0.5, 0.5))?;
            near(
                &y,
                &[
                    1., 1., 2., 2., 1., 1., 2., 2., 3., 3., 4., 4., 3., 3., 4., 4.,
                ],
            )?;
            near(&nearest(&x, (1, 1), (2., 2.))?, &[1.])?;
            let y = bilinear(&x, (1, 3), (2., 2. / 3.), true)?;
            near(&y, &[1., 1.5, 2.])?;
            let y = bilinear(&x, (2, 4), (1., 0.5), false)?;
            near(&y, &[1., 1.25, 1.75, 2., 3., 3.25, 3.75, 4.])?;
        }
        Ok(())
    }

    #[test]
    fn errors() -> Result<()> {
        assert!(nearest(&varied(&[2, 2])?, (4, 4), (0.5, 0.5)).is_err());
        assert!(bilinear(&varied(&[1, 0, 2])?, (4, 4), (0.5, 0.5), false).is_err());
        let empty = varied(&[0, 2, 3, 3])?;
        assert_eq!(nearest(&empty, (6, 6), (0.5, 0.5))?.dims(), &[0, 2, 6, 6]);
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        let x = [strided(&varied(&[1, 2, 3, 4])?)?];
        check(&x, |v| nearest(&v[0], (5, 3), (0.6, 4. / 3.)))?;
        check(&x, |v| bilinear(&v[0], (5, 3), (0.6, 4. / 3.), false))?;
        check(&x, |v| bilinear(&v[0], (5, 3), (0.6, 4. / 3.), true))
    }
}
