//! A siamese network: one tower over two images, and how far apart they are.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// An image `[N, 1, 28, 28]` as 16 numbers.
#[derive(Module, Clone, Debug)]
pub struct Tower {
    /// 5x5.
    pub conv: nn::Conv2d,
    /// Halves the image.
    pub pool: nn::AvgPool2d,
    /// To 16 numbers.
    pub fc: nn::Linear,
}

#[trace]
impl Tower {
    /// Applies the tower.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::leaky_relu(&self.conv.forward(x)?, 0.1)?;
        let x = self.pool.forward(&x)?;
        self.fc.forward(&x.flatten(1, -1)?)
    }
}

/// Two batches of images `[N, 1, 28, 28]` to distances and cosines `[N]`.
#[derive(Module, Clone, Debug)]
pub struct Siamese {
    /// Used for both.
    pub tower: Tower,
}

impl Siamese {
    /// A model.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new() -> Result<Self> {
        Ok(Siamese {
            tower: Tower {
                conv: nn::Conv2d::new(1, 6, 5)?,
                pool: nn::AvgPool2d::new(2),
                fc: nn::Linear::new(6 * 12 * 12, 16)?,
            },
        })
    }
}

#[trace]
impl Siamese {
    /// Distances and cosines of the pairs.
    ///
    /// # Errors
    /// Returns an error if a shape differs.
    pub fn forward(&self, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
        let ea = self.tower.forward(a)?;
        let eb = self.tower.forward(b)?;
        let square = (&ea - &eb)?.pow(2)?.sum(1)?;
        let distance = ops::sqrt(&(square + 1e-6)?)?;
        Ok((distance, ops::cosine_similarity(&ea, &eb, 1, 1e-8)?))
    }
}
