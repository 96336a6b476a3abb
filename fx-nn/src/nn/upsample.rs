//! `Upsample`: images enlarged by a factor.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// `x` `[N, C, H, W]` (or `[C, H, W]`) enlarged `scale_factor` times.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 2.0], (1, 1, 1, 2))?;
/// let y = nn::Upsample::new(2).forward(&x)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 4]);
/// assert_eq!(y.to_vec()?, [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Upsample {
    /// How many times as large the result is.
    pub scale_factor: f64,
    /// `"nearest"` or `"bilinear"`.
    pub mode: String,
    /// For `"bilinear"`: whether the corners of both images are the same points.
    pub align_corners: Option<bool>,
}

impl Upsample {
    /// To the nearest pixels.
    pub fn new(scale_factor: impl Into<f64>) -> Self {
        Upsample {
            scale_factor: scale_factor.into(),
            mode: "nearest".into(),
            align_corners: None,
        }
    }
}

options!(Upsample { mode: impl Into<String>, align_corners: impl Into<Option<bool>> });

#[trace(leaf, path = "fx_nn::nn::Upsample")]
impl Upsample {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the mode is unknown, or `x` is not an image.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::interpolate(x, None, self.scale_factor, &self.mode, self.align_corners)
    }
}
