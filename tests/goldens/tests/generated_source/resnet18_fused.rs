//! `Generated`, generated from a traced graph of 51 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `maxpool`.
    pub maxpool: fx_nn::nn::MaxPool2d,
    /// `layer1`.
    pub layer1: Layer1,
    /// `layer2`.
    pub layer2: Layer2,
    /// `layer3`.
    pub layer3: Layer2,
    /// `layer4`.
    pub layer4: Layer2,
    /// `avgpool`.
    pub avgpool: fx_nn::nn::AdaptiveAvgPool2d,
    /// `fc`.
    pub fc: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            conv1: saved.take_submodule("conv1")?,
            relu: saved.take_submodule("relu")?,
            maxpool: saved.take_submodule("maxpool")?,
            layer1: Layer1::take(saved, "layer1")?,
            layer2: Layer2::take(saved, "layer2")?,
            layer3: Layer2::take(saved, "layer3")?,
            layer4: Layer2::take(saved, "layer4")?,
            avgpool: saved.take_submodule("avgpool")?,
            fc: saved.take_submodule("fc")?,
        })
    }
}

/// What is at `layer1`.
#[derive(Module)]
pub struct Layer1(pub BasicBlock, pub BasicBlock);

impl Layer1 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer1(
            BasicBlock::take(saved, &format!("{path}.0"))?,
            BasicBlock::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `layer1.0`, `layer1.1`, `layer2.1`, `layer3.1` and 1 more places.
#[derive(Module)]
pub struct BasicBlock {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
}

impl BasicBlock {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(BasicBlock {
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            relu: saved.take_submodule(&format!("{path}.relu"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
        })
    }
}

/// What is at `layer2`, `layer3`, `layer4`.
#[derive(Module)]
pub struct Layer2(pub BasicBlock2, pub BasicBlock);

impl Layer2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer2(
            BasicBlock2::take(saved, &format!("{path}.0"))?,
            BasicBlock::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `layer2.0`, `layer3.0`, `layer4.0`.
#[derive(Module)]
pub struct BasicBlock2 {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
    /// `downsample`.
    pub downsample: Sequential,
}

impl BasicBlock2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(BasicBlock2 {
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            relu: saved.take_submodule(&format!("{path}.relu"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
            downsample: Sequential::take(saved, &format!("{path}.downsample"))?,
        })
    }
}

/// What is at `layer2.0.downsample`, `layer3.0.downsample`, `layer4.0.downsample`.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Conv2d);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
        ))
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
        let conv1 = self.conv1.forward(x)?;
        let relu = self.relu.forward(&conv1)?;  drop(conv1);
        let maxpool = self.maxpool.forward(&relu)?;  drop(relu);
        // layer1.0: BasicBlock
        let layer1_0_conv1 = self.layer1.0.conv1.forward(&maxpool)?;
        let layer1_0_relu = self.layer1.0.relu.forward(&layer1_0_conv1)?;  drop(layer1_0_conv1);
        let layer1_0_conv2 = self.layer1.0.conv2.forward(&layer1_0_relu)?;  drop(layer1_0_relu);
        let add = (&layer1_0_conv2 + &maxpool)?;  drop(layer1_0_conv2); drop(maxpool);
        let layer1_0_relu_1 = self.layer1.0.relu.forward(&add)?;  drop(add);
        // layer1.1: BasicBlock
        let layer1_1_conv1 = self.layer1.1.conv1.forward(&layer1_0_relu_1)?;
        let layer1_1_relu = self.layer1.1.relu.forward(&layer1_1_conv1)?;  drop(layer1_1_conv1);
        let layer1_1_conv2 = self.layer1.1.conv2.forward(&layer1_1_relu)?;  drop(layer1_1_relu);
        let add_1 = (&layer1_1_conv2 + &layer1_0_relu_1)?;  drop(layer1_1_conv2); drop(layer1_0_relu_1);
        let layer1_1_relu_1 = self.layer1.1.relu.forward(&add_1)?;  drop(add_1);
        // layer2.0: BasicBlock
        let layer2_0_conv1 = self.layer2.0.conv1.forward(&layer1_1_relu_1)?;
        let layer2_0_relu = self.layer2.0.relu.forward(&layer2_0_conv1)?;  drop(layer2_0_conv1);
        let layer2_0_conv2 = self.layer2.0.conv2.forward(&layer2_0_relu)?;  drop(layer2_0_relu);
        // layer2.0.downsample: Sequential
        let layer2_0_downsample_0 = self.layer2.0.downsample.0.forward(&layer1_1_relu_1)?;  drop(layer1_1_relu_1);
        // layer2.0: BasicBlock
        let add_2 = (&layer2_0_conv2 + &layer2_0_downsample_0)?;  drop(layer2_0_conv2); drop(layer2_0_downsample_0);
        let layer2_0_relu_1 = self.layer2.0.relu.forward(&add_2)?;  drop(add_2);
        // layer2.1: BasicBlock
        let layer2_1_conv1 = self.layer2.1.conv1.forward(&layer2_0_relu_1)?;
        let layer2_1_relu = self.layer2.1.relu.forward(&layer2_1_conv1)?;  drop(layer2_1_conv1);
        let layer2_1_conv2 = self.layer2.1.conv2.forward(&layer2_1_relu)?;  drop(layer2_1_relu);
        let add_3 = (&layer2_1_conv2 + &layer2_0_relu_1)?;  drop(layer2_1_conv2); drop(layer2_0_relu_1);
        let layer2_1_relu_1 = self.layer2.1.relu.forward(&add_3)?;  drop(add_3);
        // layer3.0: BasicBlock
        let layer3_0_conv1 = self.layer3.0.conv1.forward(&layer2_1_relu_1)?;
        let layer3_0_relu = self.layer3.0.relu.forward(&layer3_0_conv1)?;  drop(layer3_0_conv1);
        let layer3_0_conv2 = self.layer3.0.conv2.forward(&layer3_0_relu)?;  drop(layer3_0_relu);
        // layer3.0.downsample: Sequential
        let layer3_0_downsample_0 = self.layer3.0.downsample.0.forward(&layer2_1_relu_1)?;  drop(layer2_1_relu_1);
        // layer3.0: BasicBlock
        let add_4 = (&layer3_0_conv2 + &layer3_0_downsample_0)?;  drop(layer3_0_conv2); drop(layer3_0_downsample_0);
        let layer3_0_relu_1 = self.layer3.0.relu.forward(&add_4)?;  drop(add_4);
        // layer3.1: BasicBlock
        let layer3_1_conv1 = self.layer3.1.conv1.forward(&layer3_0_relu_1)?;
        let layer3_1_relu = self.layer3.1.relu.forward(&layer3_1_conv1)?;  drop(layer3_1_conv1);
        let layer3_1_conv2 = self.layer3.1.conv2.forward(&layer3_1_relu)?;  drop(layer3_1_relu);
        let add_5 = (&layer3_1_conv2 + &layer3_0_relu_1)?;  drop(layer3_1_conv2); drop(layer3_0_relu_1);
        let layer3_1_relu_1 = self.layer3.1.relu.forward(&add_5)?;  drop(add_5);
        // layer4.0: BasicBlock
        let layer4_0_conv1 = self.layer4.0.conv1.forward(&layer3_1_relu_1)?;
        let layer4_0_relu = self.layer4.0.relu.forward(&layer4_0_conv1)?;  drop(layer4_0_conv1);
        let layer4_0_conv2 = self.layer4.0.conv2.forward(&layer4_0_relu)?;  drop(layer4_0_relu);
        // layer4.0.downsample: Sequential
        let layer4_0_downsample_0 = self.layer4.0.downsample.0.forward(&layer3_1_relu_1)?;  drop(layer3_1_relu_1);
        // layer4.0: BasicBlock
        let add_6 = (&layer4_0_conv2 + &layer4_0_downsample_0)?;  drop(layer4_0_conv2); drop(layer4_0_downsample_0);
        let layer4_0_relu_1 = self.layer4.0.relu.forward(&add_6)?;  drop(add_6);
        // layer4.1: BasicBlock
        let layer4_1_conv1 = self.layer4.1.conv1.forward(&layer4_0_relu_1)?;
        let layer4_1_relu = self.layer4.1.relu.forward(&layer4_1_conv1)?;  drop(layer4_1_conv1);
        let layer4_1_conv2 = self.layer4.1.conv2.forward(&layer4_1_relu)?;  drop(layer4_1_relu);
        let add_7 = (&layer4_1_conv2 + &layer4_0_relu_1)?;  drop(layer4_1_conv2); drop(layer4_0_relu_1);
        let layer4_1_relu_1 = self.layer4.1.relu.forward(&add_7)?;  drop(add_7);
        // ResNet
        let avgpool = self.avgpool.forward(&layer4_1_relu_1)?;  drop(layer4_1_relu_1);
        let flatten = fx_nn::ops::flatten(&avgpool, 1, -1)?;  drop(avgpool);
        let fc = self.fc.forward(&flatten)?;  drop(flatten);
        Ok(fc)
    }
}
