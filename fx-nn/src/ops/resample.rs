//! Images in other sizes.

use crate::op;
use fx_core::Result;

use crate::error::{Fx, require, unfit};
use crate::kernels::resample::{Line, Mode, Way, resample};
use crate::kernels::widen::is_half;
use crate::tensor::{Scales, Sizes, Tensor};

/// `x` `[N, C, L]`, `[N, C, H, W]` or `[N, C, D, H, W]` in another `size`, or `scale_factor` times as large: one number,
/// or one for each dim behind the channels.
///
/// The `mode` is one of
///
/// | mode | of | each place is |
/// |---|---|---|
/// | `"nearest"` | any | the place at or before it |
/// | `"nearest-exact"` | any | the place nearest to it |
/// | `"linear"`, `"bilinear"`, `"trilinear"` | 3, 4, 5 dims | between the two places around it |
/// | `"bicubic"` | 4 dims | on a cubic curve through four places |
/// | `"area"` | any | the mean of the places that it covers |
///
/// With `align_corners`, the centres of the first and the last place stay where they are; else their outer edges do.
/// [`interpolate_with`] has PyTorch's other options. There are images of floating point; of `uint8` there are those of
/// the nearest places and, of `[N, C, H, W]`, bilinear and bicubic ones.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 4.0], (1, 1, 1, 2))?;
/// let y = ops::interpolate(&x, None, 2.0, "nearest", None)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 4]);
/// assert_eq!(y.to_vec()?, [0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 4.0, 4.0]);
/// let to = Some([1, 4].into());
/// let y = ops::interpolate(&x, to, None, "bilinear", Some(false))?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 3.0, 4.0]);
/// let rows = Tensor::from_vec(vec![0.0f32, 4.0], (1, 1, 2))?;
/// let y = ops::interpolate(&rows, None, 2.0, "linear", None)?;
/// assert_eq!(y.to_vec()?, [0.0, 1.0, 3.0, 4.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if not exactly one of `size` and `scale_factor` is given, or the mode is not for such an `x`.
#[op(member, path = "fx_nn::ops::interpolate")]
pub fn interpolate(
    x: &Tensor,
    #[kw] size: Option<Sizes>,
    #[kw]
    #[default(None)]
    scale_factor: impl Into<Scales>,
    #[kw]
    #[default("nearest")]
    mode: &str,
    #[kw] align_corners: Option<bool>,
) -> Result<Tensor> {
    let way = |rank| Way::of(mode, rank, align_corners, false);
    resized("interpolate", x, way, size, &scale_factor, false)
}

/// [`interpolate`] with all of PyTorch's options.
///
/// With `recompute_scale_factor`, the factor decides the size, and the size where the places are; else the factor decides
/// both, which differs where the size was rounded. With `antialias`, a place of a smaller image is made of all places that
/// it covers, as Pillow does: for the modes `"bilinear"`, `"bicubic"` and `"lanczos"`, of which the last one is for
/// `antialias` alone, on images `[N, C, H, W]` of `f32`, `f64` and `uint8`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![0.0f32, 0.0, 4.0, 4.0], (1, 1, 1, 4))?;
/// let small = Some([1, 2].into());
/// let y = ops::interpolate_with(&x, small, None, "bilinear", None, None, true)?;
/// let apart = (y - Tensor::from_vec(vec![4.0f32 / 7.0, 24.0 / 7.0], (1, 1, 1, 2))?)?;
/// assert!(apart.abs()?.amax(..)?.item()? < 1e-6);
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`interpolate`], and an error if an option is not for the mode.
#[op(member, path = "fx_nn::ops::interpolate_with")]
pub fn interpolate_with(
    x: &Tensor,
    #[kw] size: Option<Sizes>,
    #[kw]
    #[default(None)]
    scale_factor: impl Into<Scales>,
    #[kw]
    #[default("nearest")]
    mode: &str,
    #[kw] align_corners: Option<bool>,
    #[kw] recompute_scale_factor: Option<bool>,
    #[kw]
    #[default(false)]
    antialias: bool,
) -> Result<Tensor> {
    let recomputed = recompute_scale_factor.unwrap_or(false);
    require("interpolate_with", !recomputed || size.is_none())?;
    let way = |rank| Way::of(mode, rank, align_corners, antialias);
    resized("interpolate_with", x, way, size, &scale_factor, recomputed)
}

fn resized(
    op: &str,
    x: &Tensor,
    way: impl Fn(usize) -> std::result::Result<Way, String>,
    size: Option<Sizes>,
    factors: &Scales,
    recomputed: bool,
) -> Result<Tensor> {
    let data = x.data(op)?;
    let way = way(data.rank()).map_err(|_| unfit(op))?;
    let over = &data.dims()[2..];
    let factors = factors.each(over.len()).map_err(|_| unfit(op))?;
    let lines: Vec<Line> = match (size, factors) {
        (Some(size), None) => {
            let size: Option<Vec<usize>> = size
                .known()?
                .into_iter()
                .map(|n| usize::try_from(n).ok())
                .collect();
            let size = match size {
                Some(size) if size.len() == 1 => vec![size[0]; over.len()],
                Some(size) if size.len() == over.len() => size,
                _ => return Err(unfit(op)),
            };
            let pairs = over.iter().zip(size);
            pairs
                .map(|(from, to)| Line {
                    from: *from,
                    to,
                    factor: None,
                })
                .collect()
        }
        (None, Some(factors)) => {
            let pairs = over.iter().zip(factors);
            let line = |(from, factor): (&usize, f64)| Line {
                from: *from,
                to: (*from as f64 * factor).floor() as usize,
                factor: (!recomputed && way.mode != Mode::Area).then_some(factor),
            };
            pairs.map(line).collect()
        }
        _ => return Err(unfit(op)),
    };
    let dtype = data.dtype();
    let is_byte = dtype == candle_core::DType::U8 && !x.is_bool();
    way.check(dtype.is_float(), is_half(dtype), is_byte)
        .map_err(|_| unfit(op))?;
    resample(op, data, &way, &lines)
        .map(|data| x.with_data(data))
        .fx()
}
