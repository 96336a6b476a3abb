//! Layers that rearrange their input, or compare two.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::{Pair, Tensor};

/// The sliding blocks of images `[N, C, H, W]` (or `[C, H, W]`) as columns: `[N, C · kH · kW, blocks]`.
#[derive(Module, Clone, Debug)]
pub struct Unfold {
    /// The block.
    pub kernel_size: Pair,
    /// Steps inside the block.
    pub dilation: Pair,
    /// Zeros around the image.
    pub padding: Pair,
    /// Steps of the block.
    pub stride: Pair,
}

impl Unfold {
    /// Blocks that move by one.
    pub fn new(kernel_size: impl Into<Pair>) -> Self {
        Unfold {
            kernel_size: kernel_size.into(),
            dilation: 1.into(),
            padding: 0.into(),
            stride: 1.into(),
        }
    }
}

options!(Unfold { dilation: impl Into<Pair>, padding: impl Into<Pair>, stride: impl Into<Pair> });

#[trace(leaf, path = "fx_nn::nn::Unfold")]
impl Unfold {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if no block fits.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::unfold(
            x,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )
    }
}

/// The columns of [`Unfold`] added up where their blocks lie in an image of `output_size`.
#[derive(Module, Clone, Debug)]
pub struct Fold {
    /// The image.
    pub output_size: Pair,
    /// The block.
    pub kernel_size: Pair,
    /// Steps inside the block.
    pub dilation: Pair,
    /// Zeros around the image.
    pub padding: Pair,
    /// Steps of the block.
    pub stride: Pair,
}

impl Fold {
    /// Blocks that move by one.
    pub fn new(output_size: impl Into<Pair>, kernel_size: impl Into<Pair>) -> Self {
        Fold {
            output_size: output_size.into(),
            kernel_size: kernel_size.into(),
            dilation: 1.into(),
            padding: 0.into(),
            stride: 1.into(),
        }
    }
}

options!(Fold { dilation: impl Into<Pair>, padding: impl Into<Pair>, stride: impl Into<Pair> });

#[trace(leaf, path = "fx_nn::nn::Fold")]
impl Fold {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::fold(
            x,
            self.output_size,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )
    }
}

/// Channels as pixels: `[.., C · r², H, W]` to `[.., C, H · r, W · r]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let x = Tensor::arange(0, 4)?.reshape((4, 1, 1))?;
/// assert_eq!(nn::PixelShuffle::new(2).forward(&x)?.dims()?, [1, 2, 2]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct PixelShuffle {
    /// How much larger the image becomes, r.
    pub upscale_factor: usize,
}

impl PixelShuffle {
    /// A layer for one factor.
    pub fn new(upscale_factor: usize) -> Self {
        PixelShuffle { upscale_factor }
    }
}

#[trace(leaf, path = "fx_nn::nn::PixelShuffle")]
impl PixelShuffle {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the factor does not divide the channels.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pixel_shuffle(x, self.upscale_factor)
    }
}

/// Pixels as channels: `[.., C, H · r, W · r]` to `[.., C · r², H, W]`.
#[derive(Module, Clone, Debug)]
pub struct PixelUnshuffle {
    /// How much smaller the image becomes, r.
    pub downscale_factor: usize,
}

impl PixelUnshuffle {
    /// A layer for one factor.
    pub fn new(downscale_factor: usize) -> Self {
        PixelUnshuffle { downscale_factor }
    }
}

#[trace(leaf, path = "fx_nn::nn::PixelUnshuffle")]
impl PixelUnshuffle {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the factor does not divide the image.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::pixel_unshuffle(x, self.downscale_factor)
    }
}

/// The channels of `[N, C, ..]` in another order: the first of each group, then the second of each, and so on.
#[derive(Module, Clone, Debug)]
pub struct ChannelShuffle {
    /// How many groups there are.
    pub groups: usize,
}

impl ChannelShuffle {
    /// A layer for so many groups.
    pub fn new(groups: usize) -> Self {
        ChannelShuffle { groups }
    }
}

#[trace(leaf, path = "fx_nn::nn::ChannelShuffle")]
impl ChannelShuffle {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the groups do not divide the channels.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::channel_shuffle(x, self.groups)
    }
}

/// Splits one dim into several, of which one size may be -1, for the remaining one.
#[derive(Module, Clone, Debug)]
pub struct Unflatten {
    /// The dim.
    pub dim: i64,
    /// Its sizes.
    pub unflattened_size: Vec<i64>,
}

impl Unflatten {
    /// A layer for one dim.
    pub fn new(dim: i64, unflattened_size: impl Into<Vec<i64>>) -> Self {
        Unflatten {
            dim,
            unflattened_size: unflattened_size.into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::Unflatten")]
impl Unflatten {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if there is no such dim, or the sizes do not make up its size.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::unflatten(x, self.dim, self.unflattened_size.clone())
    }
}

/// The cosine of the angle between vectors along a dim.
#[derive(Module, Clone, Debug)]
pub struct CosineSimilarity {
    /// The dim.
    pub dim: i64,
    /// The value that shorter lengths count as.
    pub eps: f64,
}

impl Default for CosineSimilarity {
    fn default() -> Self {
        CosineSimilarity::new()
    }
}

impl CosineSimilarity {
    /// Along dim 1: eps 1e-8.
    pub fn new() -> Self {
        CosineSimilarity { dim: 1, eps: 1e-8 }
    }
}

options!(CosineSimilarity { dim: i64, eps: f64 });

#[trace(leaf, path = "fx_nn::nn::CosineSimilarity")]
impl CosineSimilarity {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast.
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        ops::cosine_similarity(x1, x2, self.dim, self.eps)
    }
}

/// The length of x1 - x2 + eps along the last dim, by the norm `p`.
#[derive(Module, Clone, Debug)]
pub struct PairwiseDistance {
    /// The norm.
    pub p: f64,
    /// Added to the difference.
    pub eps: f64,
    /// Whether the last dim stays with size 1.
    pub keepdim: bool,
}

impl Default for PairwiseDistance {
    fn default() -> Self {
        PairwiseDistance::new()
    }
}

impl PairwiseDistance {
    /// Euclid's distance: eps 1e-6.
    pub fn new() -> Self {
        PairwiseDistance {
            p: 2.0,
            eps: 1e-6,
            keepdim: false,
        }
    }
}

options!(PairwiseDistance {
    p: f64,
    eps: f64,
    keepdim: bool
});

#[trace(leaf, path = "fx_nn::nn::PairwiseDistance")]
impl PairwiseDistance {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if the shapes do not broadcast.
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        ops::pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
    }
}
