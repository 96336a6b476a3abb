//! `Generated`, generated from a traced graph of 29 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `down1`.
    pub down1: DoubleConv,
    /// `pool`.
    pub pool: fx_nn::nn::MaxPool2d,
    /// `down2`.
    pub down2: DoubleConv,
    /// `bottom`.
    pub bottom: DoubleConv,
    /// `up2`.
    pub up2: fx_nn::nn::ConvTranspose2d,
    /// `dec2`.
    pub dec2: DoubleConv,
    /// `dec1`.
    pub dec1: DoubleConv,
    /// `head`.
    pub head: fx_nn::nn::Conv2d,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            down1: DoubleConv::take(saved, "down1")?,
            pool: saved.take_submodule("pool")?,
            down2: DoubleConv::take(saved, "down2")?,
            bottom: DoubleConv::take(saved, "bottom")?,
            up2: saved.take_submodule("up2")?,
            dec2: DoubleConv::take(saved, "dec2")?,
            dec1: DoubleConv::take(saved, "dec1")?,
            head: saved.take_submodule("head")?,
        })
    }
}

/// What is at `down1`, `down2`, `bottom`, `dec2` and 1 more places.
#[derive(Module)]
pub struct DoubleConv {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
}

impl DoubleConv {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(DoubleConv {
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
        })
    }
}

impl Generated {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Generated {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // down1: DoubleConv
        let down1_conv1 = self.down1.conv1.forward(x)?;
        let relu = fx_nn::ops::relu(&down1_conv1)?;  drop(down1_conv1);
        let down1_conv2 = self.down1.conv2.forward(&relu)?;  drop(relu);
        let relu_1 = fx_nn::ops::relu(&down1_conv2)?;  drop(down1_conv2);
        // UNet
        let pool = self.pool.forward(&relu_1)?;
        // down2: DoubleConv
        let down2_conv1 = self.down2.conv1.forward(&pool)?;  drop(pool);
        let relu_2 = fx_nn::ops::relu(&down2_conv1)?;  drop(down2_conv1);
        let down2_conv2 = self.down2.conv2.forward(&relu_2)?;  drop(relu_2);
        let relu_3 = fx_nn::ops::relu(&down2_conv2)?;  drop(down2_conv2);
        // UNet
        let pool_1 = self.pool.forward(&relu_3)?;
        // bottom: DoubleConv
        let bottom_conv1 = self.bottom.conv1.forward(&pool_1)?;  drop(pool_1);
        let relu_4 = fx_nn::ops::relu(&bottom_conv1)?;  drop(bottom_conv1);
        let bottom_conv2 = self.bottom.conv2.forward(&relu_4)?;  drop(relu_4);
        let relu_5 = fx_nn::ops::relu(&bottom_conv2)?;  drop(bottom_conv2);
        // UNet
        let up2 = self.up2.forward(&relu_5)?;  drop(relu_5);
        let cat = fx_nn::ops::cat(&[up2.clone(), relu_3.clone()], 1)?;  drop(up2); drop(relu_3);
        // dec2: DoubleConv
        let dec2_conv1 = self.dec2.conv1.forward(&cat)?;  drop(cat);
        let relu_6 = fx_nn::ops::relu(&dec2_conv1)?;  drop(dec2_conv1);
        let dec2_conv2 = self.dec2.conv2.forward(&relu_6)?;  drop(relu_6);
        let relu_7 = fx_nn::ops::relu(&dec2_conv2)?;  drop(dec2_conv2);
        // UNet
        let interpolate = fx_nn::ops::interpolate(&relu_7, None, 2.0, "nearest", None)?;  drop(relu_7);
        let cat_1 = fx_nn::ops::cat(&[interpolate.clone(), relu_1.clone()], 1)?;  drop(interpolate); drop(relu_1);
        // dec1: DoubleConv
        let dec1_conv1 = self.dec1.conv1.forward(&cat_1)?;  drop(cat_1);
        let relu_8 = fx_nn::ops::relu(&dec1_conv1)?;  drop(dec1_conv1);
        let dec1_conv2 = self.dec1.conv2.forward(&relu_8)?;  drop(relu_8);
        let relu_9 = fx_nn::ops::relu(&dec1_conv2)?;  drop(dec1_conv2);
        // UNet
        let head = self.head.forward(&relu_9)?;  drop(relu_9);
        Ok(head)
    }
}
