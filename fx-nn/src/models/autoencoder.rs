//! A convolutional autoencoder: images to a few numbers and back.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Images `[N, 3, 16, 16]` to images and their ten latent numbers.
#[derive(Module, Clone, Debug)]
pub struct AutoEncoder {
    /// To 16 channels of 4x4 pixels.
    pub encoder: nn::Sequential,
    /// To the latent numbers.
    pub to_latent: nn::Linear,
    /// And back.
    pub from_latent: nn::Linear,
    /// To images.
    pub decoder: nn::Sequential,
}

impl AutoEncoder {
    /// A model.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new() -> Result<Self> {
        let halving = |c_in: usize, c_out: usize| -> Result<_> {
            Ok(nn::Conv2d::new(c_in, c_out, 3)?.stride(2).padding(1))
        };
        let doubling = |c_in: usize, c_out: usize| -> Result<_> {
            let conv = nn::ConvTranspose2d::new(c_in, c_out, 3)?;
            Ok(conv.stride(2).padding(1).output_padding(1))
        };
        Ok(AutoEncoder {
            encoder: nn::Sequential::new()
                .push(halving(3, 8)?)
                .push(nn::ReLU::new())
                .push(halving(8, 16)?)
                .push(nn::ReLU::new()),
            to_latent: nn::Linear::new(16 * 4 * 4, 10)?,
            from_latent: nn::Linear::new(10, 16 * 4 * 4)?,
            decoder: nn::Sequential::new()
                .push(doubling(16, 8)?)
                .push(nn::ReLU::new())
                .push(doubling(8, 3)?)
                .push(nn::Sigmoid::new()),
        })
    }
}

#[trace]
impl AutoEncoder {
    /// The images again, and the latent numbers `[N, 10]`.
    ///
    /// # Errors
    /// Returns an error if `x` is not `[N, 3, 16, 16]`.
    pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let h = self.encoder.forward(x)?;
        let z = self.to_latent.forward(&ops::flatten(&h, 1, -1)?)?;
        let h = self.from_latent.forward(&z)?.view((-1, 16, 4, 4))?;
        Ok((self.decoder.forward(&h)?, z))
    }
}
