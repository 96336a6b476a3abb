//! `AdaptiveAvgPool2d`: averages to a given size.

use fx_core::{Module, Result, trace};

use crate::ops;
use crate::tensor::{Pair, Tensor};

/// The averages of windows that divide `x` `[N, C, H, W]` (or `[C, H, W]`) into `output_size`.
#[derive(Module, Clone, Debug)]
pub struct AdaptiveAvgPool2d {
    /// Height and width of the result.
    pub output_size: Pair,
}

impl AdaptiveAvgPool2d {
    /// A layer for one result size.
    pub fn new(output_size: impl Into<Pair>) -> Self {
        AdaptiveAvgPool2d {
            output_size: output_size.into(),
        }
    }
}

#[trace(leaf, path = "fx_nn::nn::AdaptiveAvgPool2d")]
impl AdaptiveAvgPool2d {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if `x` has a different rank.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::adaptive_avg_pool2d(x, self.output_size)
    }
}
