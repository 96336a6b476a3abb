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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, f64s, near, strided, varied};
    use candle_core::{Device, Var};

    type Two = (usize, usize);
    const CASES: [(Two, Two, Two, Two, bool); 8] = [
        ((2, 2), (2, 2), (0, 0), (1, 1), false),
        ((3, 3), (2, 2), (1, 1), (1, 1), false),
        ((3, 2), (1, 2), (1, 0), (1, 1), false),
        ((2, 3), (2, 1), (1, 1), (2, 1), false),
        ((3, 3), (2, 3), (1, 1), (1, 1), true),
        ((2, 2), (3, 2), (0, 1), (1, 3), true),
        ((5, 1), (1, 1), (2, 0), (1, 1), false),
        ((2, 3), (2, 3), (0, 0), (1, 1), true),
    ];

    /// By definition, in plain loops.
    fn slow(x: &[f64], [c, h, w]: [usize; 3], case: (Two, Two, Two, Two, bool)) -> Vec<f64> {
        let (k, s, p, d, ceil) = case;
        let count = |i: usize, k: usize, s: usize, p: usize, d: usize| {
            let room = (i + 2 * p - d * (k - 1) - 1) as f64 / s as f64;
            let n = if ceil { room.ceil() } else { room.floor() } as usize + 1;
            if ceil && (n - 1) * s >= i + p {
                n - 1
            } else {
                n
            }
        };
        let mut y = vec![];
        for c in 0..c {
            for oy in 0..count(h, k.0, s.0, p.0, d.0) {
                for ox in 0..count(w, k.1, s.1, p.1, d.1) {
                    let mut best = f64::NEG_INFINITY;
                    for i in 0..k.0 * k.1 {
                        let row = (oy * s.0 + i / k.1 * d.0) as i64 - p.0 as i64;
                        let col = (ox * s.1 + i % k.1 * d.1) as i64 - p.1 as i64;
                        if (0..h as i64).contains(&row) && (0..w as i64).contains(&col) {
                            best = best.max(x[(c * h + row as usize) * w + col as usize]);
                        }
                    }
                    y.push(best);
                }
            }
        }
        y
    }

    #[test]
    fn matches_the_definition() -> Result<()> {
        let x = varied(&[2, 7, 6])?.affine(1., -3.)?;
        let values = f64s(&x)?;
        for case in CASES {
            let (k, s, p, d, ceil) = case;
            let want = slow(&values, [2, 7, 6], case);
            near(&max_pool2d(&x, k, s, p, d, ceil)?, &want)?;
            near(&max_pool2d(&strided(&x)?, k, s, p, d, ceil)?, &want)?;
            let var = Var::from_tensor(&x)?;
            near(&max_pool2d(var.as_tensor(), k, s, p, d, ceil)?, &want)?;
        }
        Ok(())
    }

    #[test]
    fn gradients_match() -> Result<()> {
        for (k, s, p, d, ceil) in CASES {
            let x = [strided(&varied(&[2, 1, 7, 6])?)?];
            check(&x, |v| max_pool2d(&v[0], k, s, p, d, ceil))?;
        }
        Ok(())
    }

    #[test]
    fn ties_nan_and_hollow_windows() -> Result<()> {
        let x = Var::zeros((1, 1, 2, 2), candle_core::DType::F64, &Device::Cpu)?;
        let y = max_pool2d(x.as_tensor(), (3, 3), (1, 1), (1, 1), (1, 1), false)?;
        let grads = y.sum_all()?.backward()?;
        near(grads.get(&x).expect("a gradient"), &[4., 0., 0., 0.])?;
        let x = Tensor::new(&[[[1f64, f64::NAN]]], &Device::Cpu)?;
        assert!(f64s(&max_pool2d(&x, (1, 2), (1, 1), (0, 0), (1, 1), false)?)?[0].is_nan());
        let x = Var::new(&[[[1f64, 2.]]], &Device::Cpu)?;
        let y = max_pool2d(x.as_tensor(), (1, 2), (1, 1), (0, 1), (1, 3), false)?;
        assert_eq!(f64s(&y)?, [f64::NEG_INFINITY]);
        let grads = y.sum_all()?.backward()?;
        near(grads.get(&x).expect("a gradient"), &[0., 0.])
    }

    #[test]
    fn errors_and_empty() -> Result<()> {
        let x = varied(&[1, 1, 3, 3])?;
        let pool = |x: &Tensor, k, p| max_pool2d(x, k, (1, 1), p, (1, 1), false);
        let text = pool(&x, (4, 4), (0, 0)).unwrap_err().to_string();
        assert!(text.contains("max_pool2d: a kernel of 4"), "{text}");
        assert!(pool(&x, (2, 2), (2, 0)).is_err());
        assert!(pool(&x, (0, 2), (0, 0)).is_err());
        assert!(pool(&varied(&[3, 3])?, (2, 2), (0, 0)).is_err());
        assert_eq!(
            pool(&varied(&[0, 2, 3, 3])?, (2, 2), (0, 0))?.dims(),
            &[0, 2, 2, 2]
        );
        Ok(())
    }
}
