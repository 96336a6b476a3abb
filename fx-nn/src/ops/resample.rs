//! Images in other sizes.

use fx_core::{Error, Result, wrap};

use crate::error::Fx;
use crate::kernels::resample;
use crate::tensor::{Sizes, Tensor};

/// `x` `[N, C, H, W]` (or `[C, H, W]`) in another `size`, or `scale_factor` times as large; `mode` is `"nearest"` or
/// `"bilinear"`.
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
/// # Ok::<(), fx_nn::Error>(())
/// ```
///
/// # Errors
/// Returns an error if not exactly one of `size` and `scale_factor` is given, or `mode` is unknown.
#[wrap(path = "fx_nn::ops::interpolate")]
pub fn interpolate(
    x: &Tensor,
    #[kw] size: Option<Sizes>,
    #[kw] scale_factor: impl Into<Option<f64>>,
    #[kw]
    #[default("nearest")]
    mode: &str,
    #[kw] align_corners: Option<bool>,
) -> Result<Tensor> {
    let data = x.data("interpolate")?;
    let &[.., height, width] = data.dims() else {
        return Err(Error::msg(format_args!(
            "interpolate: input {:?} must be [N, C, H, W] or [C, H, W]",
            data.dims()
        )));
    };
    let (size, scale) = match (size, scale_factor) {
        (Some(size), None) => {
            let size: Option<Vec<usize>> = size
                .known()?
                .into_iter()
                .map(|n| usize::try_from(n).ok())
                .collect();
            let size = match size.as_deref() {
                Some(&[side]) => (side, side),
                Some(&[height, width]) => (height, width),
                _ => {
                    return Err(Error::msg(
                        "interpolate: size is one number or two, above 0",
                    ));
                }
            };
            let ratio = |from: usize, to: usize| from as f64 / to.max(1) as f64;
            (size, (ratio(height, size.0), ratio(width, size.1)))
        }
        (None, Some(factor)) if factor > 0.0 => {
            let scaled = |n: usize| (n as f64 * factor).floor() as usize;
            (
                (scaled(height), scaled(width)),
                (1.0 / factor, 1.0 / factor),
            )
        }
        (None, Some(factor)) => {
            return Err(Error::msg(format_args!(
                "interpolate: scale_factor is above 0, not {factor}"
            )));
        }
        _ => {
            return Err(Error::msg("interpolate: give one of size and scale_factor"));
        }
    };
    match mode {
        "nearest" if align_corners.is_some() => {
            return Err(Error::msg(
                "interpolate: align_corners is for the mode \"bilinear\"",
            ));
        }
        "nearest" => resample::nearest(data, size, scale),
        "bilinear" => resample::bilinear(data, size, scale, align_corners.unwrap_or(false)),
        other => {
            return Err(Error::msg(format_args!(
                "interpolate: mode is \"nearest\" or \"bilinear\", not {other:?}"
            )));
        }
    }
    .map(|data| x.with_data(data))
    .fx()
}
