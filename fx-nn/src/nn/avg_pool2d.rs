//! `AvgPool2d`: the average of each window.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// The average of each window of `x` `[N, C, H, W]` (or `[C, H, W]`).
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 16)?.reshape((1, 1, 4, 4))?.to_dtype(DType::F32)?;
/// let y = nn::AvgPool2d::new(2).forward(&x)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 2]);
/// assert_eq!(y.to_vec()?, [2.5, 4.5, 10.5, 12.5]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct AvgPool2d {
    /// The window.
    pub kernel_size: Pair,
    /// Its steps.
    pub stride: Pair,
    /// Zeros added on each side, at most half the window.
    pub padding: Pair,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
    /// Whether padding counts as zeros.
    pub count_include_pad: bool,
}

impl AvgPool2d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Pair>) -> Self {
        let kernel_size = kernel_size.into();
        AvgPool2d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

options!(AvgPool2d { stride: impl Into<Pair>, padding: impl Into<Pair>, ceil_mode: bool, count_include_pad: bool });

#[trace(leaf, path = "fx_nn::nn::AvgPool2d")]
impl AvgPool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
    }
}
