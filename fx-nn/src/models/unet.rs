//! U-Net (Ronneberger et al. 2015): images reduced and enlarged again, with skip connections.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Two 3x3 convolutions with batch norm and ReLU.
#[derive(Module, Clone, Debug)]
pub struct DoubleConv {
    /// The first convolution.
    pub conv1: nn::Conv2d,
    /// After `conv1`.
    pub bn1: nn::BatchNorm2d,
    /// The second convolution.
    pub conv2: nn::Conv2d,
    /// After `conv2`.
    pub bn2: nn::BatchNorm2d,
}

impl DoubleConv {
    fn new(c_in: usize, c_out: usize) -> Result<Self> {
        Ok(DoubleConv {
            conv1: nn::Conv2d::new(c_in, c_out, 3)?.padding(1).bias(false),
            bn1: nn::BatchNorm2d::new(c_out)?,
            conv2: nn::Conv2d::new(c_out, c_out, 3)?.padding(1).bias(false),
            bn2: nn::BatchNorm2d::new(c_out)?,
        })
    }
}

#[trace]
impl DoubleConv {
    /// Applies the convolutions.
    ///
    /// # Errors
    /// Returns an error if the channels do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(&self.bn1.forward(&self.conv1.forward(x)?)?)?;
        ops::relu(&self.bn2.forward(&self.conv2.forward(&x)?)?)
    }
}

/// A network over images `[N, channels, H, W]`, H and W multiples of 4; returns scores
/// `[N, classes, H, W]`.
#[derive(Module, Clone, Debug)]
pub struct UNet {
    /// At full size.
    pub down1: DoubleConv,
    /// At half size.
    pub down2: DoubleConv,
    /// At a quarter of the size.
    pub bottom: DoubleConv,
    /// Halves the image.
    pub pool: nn::MaxPool2d,
    /// Doubles the image.
    pub up2: nn::ConvTranspose2d,
    /// At half size, with the results of `down2`.
    pub dec2: DoubleConv,
    /// At full size, with the results of `down1`.
    pub dec1: DoubleConv,
    /// Scores of each pixel.
    pub head: nn::Conv2d,
}

impl UNet {
    /// A model in training mode, with `base` channels at full size.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(channels: usize, classes: usize, base: usize) -> Result<Self> {
        Ok(UNet {
            down1: DoubleConv::new(channels, base)?,
            down2: DoubleConv::new(base, base * 2)?,
            bottom: DoubleConv::new(base * 2, base * 4)?,
            pool: nn::MaxPool2d::new(2),
            up2: nn::ConvTranspose2d::new(base * 4, base * 2, 2)?.stride(2),
            dec2: DoubleConv::new(base * 4, base * 2)?,
            dec1: DoubleConv::new(base * 3, base)?,
            head: nn::Conv2d::new(base, classes, 1)?,
        })
    }
}

#[trace]
impl UNet {
    /// Scores of each pixel.
    ///
    /// # Errors
    /// Returns an error if the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let c1 = self.down1.forward(x)?;
        let c2 = self.down2.forward(&self.pool.forward(&c1)?)?;
        let b = self.bottom.forward(&self.pool.forward(&c2)?)?;
        let up = ops::cat(&[self.up2.forward(&b)?, c2], 1)?;
        let u2 = self.dec2.forward(&up)?;
        let u1 = ops::interpolate(&u2, None, 2.0, "nearest", None)?;
        let u1 = self.dec1.forward(&ops::cat(&[u1, c1], 1)?)?;
        self.head.forward(&u1)
    }
}
