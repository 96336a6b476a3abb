//! `MaxPool2d`: the maximum of each window.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// The maximum of each window of `x` `[N, C, H, W]` (or `[C, H, W]`); padding counts as minus infinity.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::MaxPool2d { padding: 1.into(), stride: 2.into(), ..nn::MaxPool2d::new(3) };
/// let x = Tensor::arange(-20, -4)?.reshape((1, 1, 4, 4))?.to_dtype(DType::F32)?;
/// let y = layer.forward(&x)?;
/// assert_eq!(y.dims()?, [1, 1, 2, 2]);
/// assert_eq!(y.to_vec()?, [-15.0, -13.0, -7.0, -5.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MaxPool2d {
    /// The window.
    pub kernel_size: Pair,
    /// Its steps.
    pub stride: Pair,
    /// Added on each side, at most half the window.
    pub padding: Pair,
    /// Steps inside the window.
    pub dilation: Pair,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
}

impl MaxPool2d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Pair>) -> Self {
        let kernel_size = kernel_size.into();
        MaxPool2d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
            dilation: 1.into(),
            ceil_mode: false,
        }
    }
}

options!(MaxPool2d { stride: impl Into<Pair>, padding: impl Into<Pair>, dilation: impl Into<Pair>, ceil_mode: bool });

#[trace(leaf, path = "fx_nn::nn::MaxPool2d")]
impl MaxPool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::max_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
        )
    }
}
