//! Layers that pool over windows of rows, images and volumes.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Pair, Sizes, Tensor, Triple};

/// The maximum of each window of rows `[N, C, L]` (or `[C, L]`); padding counts as minus infinity.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::from_vec(vec![1.0f32, 4.0, 2.0, 3.0], (1, 4))?;
/// assert_eq!(nn::MaxPool1d::new(2).forward(&x)?.to_vec()?, [4.0, 3.0]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct MaxPool1d {
    /// The window.
    pub kernel_size: usize,
    /// Its steps.
    pub stride: usize,
    /// Added on each side, at most half the window.
    pub padding: usize,
    /// Steps inside the window.
    pub dilation: usize,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
}

impl MaxPool1d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: usize) -> Self {
        MaxPool1d {
            kernel_size,
            stride: kernel_size,
            padding: 0,
            dilation: 1,
            ceil_mode: false,
        }
    }
}

options!(MaxPool1d {
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil_mode: bool
});

#[trace(leaf, path = "fx_nn::nn::MaxPool1d")]
impl MaxPool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::max_pool1d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
        )
    }
}

/// The average of each window of rows `[N, C, L]` (or `[C, L]`).
#[derive(Module, Clone, Debug)]
pub struct AvgPool1d {
    /// The window.
    pub kernel_size: usize,
    /// Its steps.
    pub stride: usize,
    /// Added on each side, at most half the window.
    pub padding: usize,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
    /// Whether padding counts as zeros.
    pub count_include_pad: bool,
}

impl AvgPool1d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: usize) -> Self {
        AvgPool1d {
            kernel_size,
            stride: kernel_size,
            padding: 0,
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

options!(AvgPool1d {
    stride: usize,
    padding: usize,
    ceil_mode: bool,
    count_include_pad: bool
});

#[trace(leaf, path = "fx_nn::nn::AvgPool1d")]
impl AvgPool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::avg_pool1d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
    }
}

/// The maximum of each of the windows that divide rows `[N, C, L]` (or `[C, L]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveMaxPool1d {
    /// The size of the result.
    pub output_size: usize,
}

impl AdaptiveMaxPool1d {
    /// A layer for one result size.
    pub fn new(output_size: usize) -> Self {
        AdaptiveMaxPool1d { output_size }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveMaxPool1d")]
impl AdaptiveMaxPool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_max_pool1d(x, self.output_size)
    }
}

/// The average of each of the windows that divide rows `[N, C, L]` (or `[C, L]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveAvgPool1d {
    /// The size of the result.
    pub output_size: usize,
}

impl AdaptiveAvgPool1d {
    /// A layer for one result size.
    pub fn new(output_size: usize) -> Self {
        AdaptiveAvgPool1d { output_size }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveAvgPool1d")]
impl AdaptiveAvgPool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_avg_pool1d(x, self.output_size)
    }
}

/// The sum of the powers of each window of rows `[N, C, L]` (or `[C, L]`), to the power `1 / norm_type`.
#[derive(Module, Clone, Debug)]
pub struct LPPool1d {
    /// The power.
    pub norm_type: f64,
    /// The window.
    pub kernel_size: usize,
    /// Its steps.
    pub stride: usize,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
}

impl LPPool1d {
    /// A window that moves by its own size.
    pub fn new(norm_type: f64, kernel_size: usize) -> Self {
        LPPool1d {
            norm_type,
            kernel_size,
            stride: kernel_size,
            ceil_mode: false,
        }
    }
}

options!(LPPool1d {
    stride: usize,
    ceil_mode: bool
});

#[trace(leaf, path = "fx_nn::nn::LPPool1d")]
impl LPPool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::lp_pool1d(
            x,
            self.norm_type,
            self.kernel_size,
            self.stride,
            self.ceil_mode,
        )
    }
}

/// Zeros, except for the elements of rows `[N, C, L]` (or `[C, L]`) at the places that
/// `max_pool1d_with_indices` returned.
#[derive(Module, Clone, Debug)]
pub struct MaxUnpool1d {
    /// The window.
    pub kernel_size: usize,
    /// Its steps.
    pub stride: usize,
    /// The padding on each side.
    pub padding: usize,
}

impl MaxUnpool1d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: usize) -> Self {
        MaxUnpool1d {
            kernel_size,
            stride: kernel_size,
            padding: 0,
        }
    }
}

options!(MaxUnpool1d {
    stride: usize,
    padding: usize
});

#[trace(leaf, path = "fx_nn::nn::MaxUnpool1d")]
impl MaxUnpool1d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or a place is out of range.
    pub fn forward(
        &self,
        x: &Tensor,
        indices: &Tensor,
        output_size: Option<Sizes>,
    ) -> Result<Tensor> {
        ops::max_unpool1d(
            x,
            indices,
            self.kernel_size,
            self.stride,
            self.padding,
            output_size,
        )
    }
}

/// The maximum of each of the windows that divide images `[N, C, H, W]` (or `[C, H, W]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveMaxPool2d {
    /// The size of the result.
    pub output_size: Pair,
}

impl AdaptiveMaxPool2d {
    /// A layer for one result size.
    pub fn new(output_size: impl Into<Pair>) -> Self {
        AdaptiveMaxPool2d {
            output_size: output_size.into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveMaxPool2d")]
impl AdaptiveMaxPool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_max_pool2d(x, self.output_size)
    }
}

/// The sum of the powers of each window of images `[N, C, H, W]` (or `[C, H, W]`), to the power `1 / norm_type`.
#[derive(Module, Clone, Debug)]
pub struct LPPool2d {
    /// The power.
    pub norm_type: f64,
    /// The window.
    pub kernel_size: Pair,
    /// Its steps.
    pub stride: Pair,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
}

impl LPPool2d {
    /// A window that moves by its own size.
    pub fn new(norm_type: f64, kernel_size: impl Into<Pair>) -> Self {
        let kernel_size = kernel_size.into();
        LPPool2d {
            norm_type,
            kernel_size,
            stride: kernel_size,
            ceil_mode: false,
        }
    }
}

options!(LPPool2d { stride: impl Into<Pair>, ceil_mode: bool });

#[trace(leaf, path = "fx_nn::nn::LPPool2d")]
impl LPPool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::lp_pool2d(
            x,
            self.norm_type,
            self.kernel_size,
            self.stride,
            self.ceil_mode,
        )
    }
}

/// Zeros, except for the elements of images `[N, C, H, W]` (or `[C, H, W]`) at the places that
/// `max_pool2d_with_indices` returned.
#[derive(Module, Clone, Debug)]
pub struct MaxUnpool2d {
    /// The window.
    pub kernel_size: Pair,
    /// Its steps.
    pub stride: Pair,
    /// The padding on each side.
    pub padding: Pair,
}

impl MaxUnpool2d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Pair>) -> Self {
        let kernel_size = kernel_size.into();
        MaxUnpool2d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
        }
    }
}

options!(MaxUnpool2d { stride: impl Into<Pair>, padding: impl Into<Pair> });

#[trace(leaf, path = "fx_nn::nn::MaxUnpool2d")]
impl MaxUnpool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or a place is out of range.
    pub fn forward(
        &self,
        x: &Tensor,
        indices: &Tensor,
        output_size: Option<Sizes>,
    ) -> Result<Tensor> {
        ops::max_unpool2d(
            x,
            indices,
            self.kernel_size,
            self.stride,
            self.padding,
            output_size,
        )
    }
}

/// The maximum of each window of volumes `[N, C, D, H, W]` (or `[C, D, H, W]`); padding counts as minus infinity.
#[derive(Module, Clone, Debug)]
pub struct MaxPool3d {
    /// The window.
    pub kernel_size: Triple,
    /// Its steps.
    pub stride: Triple,
    /// Added on each side, at most half the window.
    pub padding: Triple,
    /// Steps inside the window.
    pub dilation: Triple,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
}

impl MaxPool3d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Triple>) -> Self {
        let kernel_size = kernel_size.into();
        MaxPool3d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
            dilation: 1.into(),
            ceil_mode: false,
        }
    }
}

options!(MaxPool3d { stride: impl Into<Triple>, padding: impl Into<Triple>, dilation: impl Into<Triple>, ceil_mode: bool });

#[trace(leaf, path = "fx_nn::nn::MaxPool3d")]
impl MaxPool3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::max_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
        )
    }
}

/// The average of each window of volumes `[N, C, D, H, W]` (or `[C, D, H, W]`).
#[derive(Module, Clone, Debug)]
pub struct AvgPool3d {
    /// The window.
    pub kernel_size: Triple,
    /// Its steps.
    pub stride: Triple,
    /// Added on each side, at most half the window.
    pub padding: Triple,
    /// Whether a window may hang over the end.
    pub ceil_mode: bool,
    /// Whether padding counts as zeros.
    pub count_include_pad: bool,
}

impl AvgPool3d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Triple>) -> Self {
        let kernel_size = kernel_size.into();
        AvgPool3d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

options!(AvgPool3d { stride: impl Into<Triple>, padding: impl Into<Triple>, ceil_mode: bool, count_include_pad: bool });

#[trace(leaf, path = "fx_nn::nn::AvgPool3d")]
impl AvgPool3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the window does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::avg_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
    }
}

/// The maximum of each of the windows that divide volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveMaxPool3d {
    /// The size of the result.
    pub output_size: Triple,
}

impl AdaptiveMaxPool3d {
    /// A layer for one result size.
    pub fn new(output_size: impl Into<Triple>) -> Self {
        AdaptiveMaxPool3d {
            output_size: output_size.into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveMaxPool3d")]
impl AdaptiveMaxPool3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_max_pool3d(x, self.output_size)
    }
}

/// The average of each of the windows that divide volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveAvgPool3d {
    /// The size of the result.
    pub output_size: Triple,
}

impl AdaptiveAvgPool3d {
    /// A layer for one result size.
    pub fn new(output_size: impl Into<Triple>) -> Self {
        AdaptiveAvgPool3d {
            output_size: output_size.into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveAvgPool3d")]
impl AdaptiveAvgPool3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_avg_pool3d(x, self.output_size)
    }
}

/// Zeros, except for the elements of volumes `[N, C, D, H, W]` (or `[C, D, H, W]`) at the places
/// that `max_pool3d_with_indices` returned.
#[derive(Module, Clone, Debug)]
pub struct MaxUnpool3d {
    /// The window.
    pub kernel_size: Triple,
    /// Its steps.
    pub stride: Triple,
    /// The padding on each side.
    pub padding: Triple,
}

impl MaxUnpool3d {
    /// A window that moves by its own size.
    pub fn new(kernel_size: impl Into<Triple>) -> Self {
        let kernel_size = kernel_size.into();
        MaxUnpool3d {
            kernel_size,
            stride: kernel_size,
            padding: 0.into(),
        }
    }
}

options!(MaxUnpool3d { stride: impl Into<Triple>, padding: impl Into<Triple> });

#[trace(leaf, path = "fx_nn::nn::MaxUnpool3d")]
impl MaxUnpool3d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit, or a place is out of range.
    pub fn forward(
        &self,
        x: &Tensor,
        indices: &Tensor,
        output_size: Option<Sizes>,
    ) -> Result<Tensor> {
        ops::max_unpool3d(
            x,
            indices,
            self.kernel_size,
            self.stride,
            self.padding,
            output_size,
        )
    }
}
