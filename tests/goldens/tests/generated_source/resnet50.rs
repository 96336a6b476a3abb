//! `Generated`, generated from a traced graph of 177 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `bn1`.
    pub bn1: fx_nn::nn::BatchNorm2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `maxpool`.
    pub maxpool: fx_nn::nn::MaxPool2d,
    /// `layer1`.
    pub layer1: Layer1,
    /// `layer2`.
    pub layer2: Layer2,
    /// `layer3`.
    pub layer3: Layer3,
    /// `layer4`.
    pub layer4: Layer1,
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
            bn1: saved.take_submodule("bn1")?,
            relu: saved.take_submodule("relu")?,
            maxpool: saved.take_submodule("maxpool")?,
            layer1: Layer1::take(saved, "layer1")?,
            layer2: Layer2::take(saved, "layer2")?,
            layer3: Layer3::take(saved, "layer3")?,
            layer4: Layer1::take(saved, "layer4")?,
            avgpool: saved.take_submodule("avgpool")?,
            fc: saved.take_submodule("fc")?,
        })
    }
}

/// What is at `layer1`, `layer4`.
#[derive(Module)]
pub struct Layer1(pub Bottleneck, pub Bottleneck2, pub Bottleneck2);

impl Layer1 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer1(
            Bottleneck::take(saved, &format!("{path}.0"))?,
            Bottleneck2::take(saved, &format!("{path}.1"))?,
            Bottleneck2::take(saved, &format!("{path}.2"))?,
        ))
    }
}

/// What is at `layer1.0`, `layer2.0`, `layer3.0`, `layer4.0`.
#[derive(Module)]
pub struct Bottleneck {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `bn1`.
    pub bn1: fx_nn::nn::BatchNorm2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
    /// `bn2`.
    pub bn2: fx_nn::nn::BatchNorm2d,
    /// `conv3`.
    pub conv3: fx_nn::nn::Conv2d,
    /// `bn3`.
    pub bn3: fx_nn::nn::BatchNorm2d,
    /// `downsample`.
    pub downsample: Sequential,
}

impl Bottleneck {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Bottleneck {
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            bn1: saved.take_submodule(&format!("{path}.bn1"))?,
            relu: saved.take_submodule(&format!("{path}.relu"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
            bn2: saved.take_submodule(&format!("{path}.bn2"))?,
            conv3: saved.take_submodule(&format!("{path}.conv3"))?,
            bn3: saved.take_submodule(&format!("{path}.bn3"))?,
            downsample: Sequential::take(saved, &format!("{path}.downsample"))?,
        })
    }
}

/// What is at `layer1.0.downsample`, `layer2.0.downsample`, `layer3.0.downsample`, `layer4.0.downsample`.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
        ))
    }
}

/// What is at `layer1.1`, `layer1.2`, `layer2.1`, `layer2.2` and 8 more places.
#[derive(Module)]
pub struct Bottleneck2 {
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `bn1`.
    pub bn1: fx_nn::nn::BatchNorm2d,
    /// `relu`.
    pub relu: fx_nn::nn::ReLU,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
    /// `bn2`.
    pub bn2: fx_nn::nn::BatchNorm2d,
    /// `conv3`.
    pub conv3: fx_nn::nn::Conv2d,
    /// `bn3`.
    pub bn3: fx_nn::nn::BatchNorm2d,
}

impl Bottleneck2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Bottleneck2 {
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            bn1: saved.take_submodule(&format!("{path}.bn1"))?,
            relu: saved.take_submodule(&format!("{path}.relu"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
            bn2: saved.take_submodule(&format!("{path}.bn2"))?,
            conv3: saved.take_submodule(&format!("{path}.conv3"))?,
            bn3: saved.take_submodule(&format!("{path}.bn3"))?,
        })
    }
}

/// What is at `layer2`.
#[derive(Module)]
pub struct Layer2(pub Bottleneck, pub Bottleneck2, pub Bottleneck2, pub Bottleneck2);

impl Layer2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer2(
            Bottleneck::take(saved, &format!("{path}.0"))?,
            Bottleneck2::take(saved, &format!("{path}.1"))?,
            Bottleneck2::take(saved, &format!("{path}.2"))?,
            Bottleneck2::take(saved, &format!("{path}.3"))?,
        ))
    }
}

/// What is at `layer3`.
#[derive(Module)]
pub struct Layer3(pub Bottleneck, pub Bottleneck2, pub Bottleneck2, pub Bottleneck2, pub Bottleneck2, pub Bottleneck2);

impl Layer3 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer3(
            Bottleneck::take(saved, &format!("{path}.0"))?,
            Bottleneck2::take(saved, &format!("{path}.1"))?,
            Bottleneck2::take(saved, &format!("{path}.2"))?,
            Bottleneck2::take(saved, &format!("{path}.3"))?,
            Bottleneck2::take(saved, &format!("{path}.4"))?,
            Bottleneck2::take(saved, &format!("{path}.5"))?,
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
        let bn1 = self.bn1.forward(&conv1)?;  drop(conv1);
        let relu = self.relu.forward(&bn1)?;  drop(bn1);
        let maxpool = self.maxpool.forward(&relu)?;  drop(relu);
        // layer1.0: Bottleneck
        let layer1_0_conv1 = self.layer1.0.conv1.forward(&maxpool)?;
        let layer1_0_bn1 = self.layer1.0.bn1.forward(&layer1_0_conv1)?;  drop(layer1_0_conv1);
        let layer1_0_relu = self.layer1.0.relu.forward(&layer1_0_bn1)?;  drop(layer1_0_bn1);
        let layer1_0_conv2 = self.layer1.0.conv2.forward(&layer1_0_relu)?;  drop(layer1_0_relu);
        let layer1_0_bn2 = self.layer1.0.bn2.forward(&layer1_0_conv2)?;  drop(layer1_0_conv2);
        let layer1_0_relu_1 = self.layer1.0.relu.forward(&layer1_0_bn2)?;  drop(layer1_0_bn2);
        let layer1_0_conv3 = self.layer1.0.conv3.forward(&layer1_0_relu_1)?;  drop(layer1_0_relu_1);
        let layer1_0_bn3 = self.layer1.0.bn3.forward(&layer1_0_conv3)?;  drop(layer1_0_conv3);
        // layer1.0.downsample: Sequential
        let layer1_0_downsample_0 = self.layer1.0.downsample.0.forward(&maxpool)?;  drop(maxpool);
        let layer1_0_downsample_1 = self.layer1.0.downsample.1.forward(&layer1_0_downsample_0)?;  drop(layer1_0_downsample_0);
        // layer1.0: Bottleneck
        let add = (&layer1_0_bn3 + &layer1_0_downsample_1)?;  drop(layer1_0_bn3); drop(layer1_0_downsample_1);
        let layer1_0_relu_2 = self.layer1.0.relu.forward(&add)?;  drop(add);
        // layer1.1: Bottleneck
        let layer1_1_conv1 = self.layer1.1.conv1.forward(&layer1_0_relu_2)?;
        let layer1_1_bn1 = self.layer1.1.bn1.forward(&layer1_1_conv1)?;  drop(layer1_1_conv1);
        let layer1_1_relu = self.layer1.1.relu.forward(&layer1_1_bn1)?;  drop(layer1_1_bn1);
        let layer1_1_conv2 = self.layer1.1.conv2.forward(&layer1_1_relu)?;  drop(layer1_1_relu);
        let layer1_1_bn2 = self.layer1.1.bn2.forward(&layer1_1_conv2)?;  drop(layer1_1_conv2);
        let layer1_1_relu_1 = self.layer1.1.relu.forward(&layer1_1_bn2)?;  drop(layer1_1_bn2);
        let layer1_1_conv3 = self.layer1.1.conv3.forward(&layer1_1_relu_1)?;  drop(layer1_1_relu_1);
        let layer1_1_bn3 = self.layer1.1.bn3.forward(&layer1_1_conv3)?;  drop(layer1_1_conv3);
        let add_1 = (&layer1_1_bn3 + &layer1_0_relu_2)?;  drop(layer1_1_bn3); drop(layer1_0_relu_2);
        let layer1_1_relu_2 = self.layer1.1.relu.forward(&add_1)?;  drop(add_1);
        // layer1.2: Bottleneck
        let layer1_2_conv1 = self.layer1.2.conv1.forward(&layer1_1_relu_2)?;
        let layer1_2_bn1 = self.layer1.2.bn1.forward(&layer1_2_conv1)?;  drop(layer1_2_conv1);
        let layer1_2_relu = self.layer1.2.relu.forward(&layer1_2_bn1)?;  drop(layer1_2_bn1);
        let layer1_2_conv2 = self.layer1.2.conv2.forward(&layer1_2_relu)?;  drop(layer1_2_relu);
        let layer1_2_bn2 = self.layer1.2.bn2.forward(&layer1_2_conv2)?;  drop(layer1_2_conv2);
        let layer1_2_relu_1 = self.layer1.2.relu.forward(&layer1_2_bn2)?;  drop(layer1_2_bn2);
        let layer1_2_conv3 = self.layer1.2.conv3.forward(&layer1_2_relu_1)?;  drop(layer1_2_relu_1);
        let layer1_2_bn3 = self.layer1.2.bn3.forward(&layer1_2_conv3)?;  drop(layer1_2_conv3);
        let add_2 = (&layer1_2_bn3 + &layer1_1_relu_2)?;  drop(layer1_2_bn3); drop(layer1_1_relu_2);
        let layer1_2_relu_2 = self.layer1.2.relu.forward(&add_2)?;  drop(add_2);
        // layer2.0: Bottleneck
        let layer2_0_conv1 = self.layer2.0.conv1.forward(&layer1_2_relu_2)?;
        let layer2_0_bn1 = self.layer2.0.bn1.forward(&layer2_0_conv1)?;  drop(layer2_0_conv1);
        let layer2_0_relu = self.layer2.0.relu.forward(&layer2_0_bn1)?;  drop(layer2_0_bn1);
        let layer2_0_conv2 = self.layer2.0.conv2.forward(&layer2_0_relu)?;  drop(layer2_0_relu);
        let layer2_0_bn2 = self.layer2.0.bn2.forward(&layer2_0_conv2)?;  drop(layer2_0_conv2);
        let layer2_0_relu_1 = self.layer2.0.relu.forward(&layer2_0_bn2)?;  drop(layer2_0_bn2);
        let layer2_0_conv3 = self.layer2.0.conv3.forward(&layer2_0_relu_1)?;  drop(layer2_0_relu_1);
        let layer2_0_bn3 = self.layer2.0.bn3.forward(&layer2_0_conv3)?;  drop(layer2_0_conv3);
        // layer2.0.downsample: Sequential
        let layer2_0_downsample_0 = self.layer2.0.downsample.0.forward(&layer1_2_relu_2)?;  drop(layer1_2_relu_2);
        let layer2_0_downsample_1 = self.layer2.0.downsample.1.forward(&layer2_0_downsample_0)?;  drop(layer2_0_downsample_0);
        // layer2.0: Bottleneck
        let add_3 = (&layer2_0_bn3 + &layer2_0_downsample_1)?;  drop(layer2_0_bn3); drop(layer2_0_downsample_1);
        let layer2_0_relu_2 = self.layer2.0.relu.forward(&add_3)?;  drop(add_3);
        // layer2.1: Bottleneck
        let layer2_1_conv1 = self.layer2.1.conv1.forward(&layer2_0_relu_2)?;
        let layer2_1_bn1 = self.layer2.1.bn1.forward(&layer2_1_conv1)?;  drop(layer2_1_conv1);
        let layer2_1_relu = self.layer2.1.relu.forward(&layer2_1_bn1)?;  drop(layer2_1_bn1);
        let layer2_1_conv2 = self.layer2.1.conv2.forward(&layer2_1_relu)?;  drop(layer2_1_relu);
        let layer2_1_bn2 = self.layer2.1.bn2.forward(&layer2_1_conv2)?;  drop(layer2_1_conv2);
        let layer2_1_relu_1 = self.layer2.1.relu.forward(&layer2_1_bn2)?;  drop(layer2_1_bn2);
        let layer2_1_conv3 = self.layer2.1.conv3.forward(&layer2_1_relu_1)?;  drop(layer2_1_relu_1);
        let layer2_1_bn3 = self.layer2.1.bn3.forward(&layer2_1_conv3)?;  drop(layer2_1_conv3);
        let add_4 = (&layer2_1_bn3 + &layer2_0_relu_2)?;  drop(layer2_1_bn3); drop(layer2_0_relu_2);
        let layer2_1_relu_2 = self.layer2.1.relu.forward(&add_4)?;  drop(add_4);
        // layer2.2: Bottleneck
        let layer2_2_conv1 = self.layer2.2.conv1.forward(&layer2_1_relu_2)?;
        let layer2_2_bn1 = self.layer2.2.bn1.forward(&layer2_2_conv1)?;  drop(layer2_2_conv1);
        let layer2_2_relu = self.layer2.2.relu.forward(&layer2_2_bn1)?;  drop(layer2_2_bn1);
        let layer2_2_conv2 = self.layer2.2.conv2.forward(&layer2_2_relu)?;  drop(layer2_2_relu);
        let layer2_2_bn2 = self.layer2.2.bn2.forward(&layer2_2_conv2)?;  drop(layer2_2_conv2);
        let layer2_2_relu_1 = self.layer2.2.relu.forward(&layer2_2_bn2)?;  drop(layer2_2_bn2);
        let layer2_2_conv3 = self.layer2.2.conv3.forward(&layer2_2_relu_1)?;  drop(layer2_2_relu_1);
        let layer2_2_bn3 = self.layer2.2.bn3.forward(&layer2_2_conv3)?;  drop(layer2_2_conv3);
        let add_5 = (&layer2_2_bn3 + &layer2_1_relu_2)?;  drop(layer2_2_bn3); drop(layer2_1_relu_2);
        let layer2_2_relu_2 = self.layer2.2.relu.forward(&add_5)?;  drop(add_5);
        // layer2.3: Bottleneck
        let layer2_3_conv1 = self.layer2.3.conv1.forward(&layer2_2_relu_2)?;
        let layer2_3_bn1 = self.layer2.3.bn1.forward(&layer2_3_conv1)?;  drop(layer2_3_conv1);
        let layer2_3_relu = self.layer2.3.relu.forward(&layer2_3_bn1)?;  drop(layer2_3_bn1);
        let layer2_3_conv2 = self.layer2.3.conv2.forward(&layer2_3_relu)?;  drop(layer2_3_relu);
        let layer2_3_bn2 = self.layer2.3.bn2.forward(&layer2_3_conv2)?;  drop(layer2_3_conv2);
        let layer2_3_relu_1 = self.layer2.3.relu.forward(&layer2_3_bn2)?;  drop(layer2_3_bn2);
        let layer2_3_conv3 = self.layer2.3.conv3.forward(&layer2_3_relu_1)?;  drop(layer2_3_relu_1);
        let layer2_3_bn3 = self.layer2.3.bn3.forward(&layer2_3_conv3)?;  drop(layer2_3_conv3);
        let add_6 = (&layer2_3_bn3 + &layer2_2_relu_2)?;  drop(layer2_3_bn3); drop(layer2_2_relu_2);
        let layer2_3_relu_2 = self.layer2.3.relu.forward(&add_6)?;  drop(add_6);
        // layer3.0: Bottleneck
        let layer3_0_conv1 = self.layer3.0.conv1.forward(&layer2_3_relu_2)?;
        let layer3_0_bn1 = self.layer3.0.bn1.forward(&layer3_0_conv1)?;  drop(layer3_0_conv1);
        let layer3_0_relu = self.layer3.0.relu.forward(&layer3_0_bn1)?;  drop(layer3_0_bn1);
        let layer3_0_conv2 = self.layer3.0.conv2.forward(&layer3_0_relu)?;  drop(layer3_0_relu);
        let layer3_0_bn2 = self.layer3.0.bn2.forward(&layer3_0_conv2)?;  drop(layer3_0_conv2);
        let layer3_0_relu_1 = self.layer3.0.relu.forward(&layer3_0_bn2)?;  drop(layer3_0_bn2);
        let layer3_0_conv3 = self.layer3.0.conv3.forward(&layer3_0_relu_1)?;  drop(layer3_0_relu_1);
        let layer3_0_bn3 = self.layer3.0.bn3.forward(&layer3_0_conv3)?;  drop(layer3_0_conv3);
        // layer3.0.downsample: Sequential
        let layer3_0_downsample_0 = self.layer3.0.downsample.0.forward(&layer2_3_relu_2)?;  drop(layer2_3_relu_2);
        let layer3_0_downsample_1 = self.layer3.0.downsample.1.forward(&layer3_0_downsample_0)?;  drop(layer3_0_downsample_0);
        // layer3.0: Bottleneck
        let add_7 = (&layer3_0_bn3 + &layer3_0_downsample_1)?;  drop(layer3_0_bn3); drop(layer3_0_downsample_1);
        let layer3_0_relu_2 = self.layer3.0.relu.forward(&add_7)?;  drop(add_7);
        // layer3.1: Bottleneck
        let layer3_1_conv1 = self.layer3.1.conv1.forward(&layer3_0_relu_2)?;
        let layer3_1_bn1 = self.layer3.1.bn1.forward(&layer3_1_conv1)?;  drop(layer3_1_conv1);
        let layer3_1_relu = self.layer3.1.relu.forward(&layer3_1_bn1)?;  drop(layer3_1_bn1);
        let layer3_1_conv2 = self.layer3.1.conv2.forward(&layer3_1_relu)?;  drop(layer3_1_relu);
        let layer3_1_bn2 = self.layer3.1.bn2.forward(&layer3_1_conv2)?;  drop(layer3_1_conv2);
        let layer3_1_relu_1 = self.layer3.1.relu.forward(&layer3_1_bn2)?;  drop(layer3_1_bn2);
        let layer3_1_conv3 = self.layer3.1.conv3.forward(&layer3_1_relu_1)?;  drop(layer3_1_relu_1);
        let layer3_1_bn3 = self.layer3.1.bn3.forward(&layer3_1_conv3)?;  drop(layer3_1_conv3);
        let add_8 = (&layer3_1_bn3 + &layer3_0_relu_2)?;  drop(layer3_1_bn3); drop(layer3_0_relu_2);
        let layer3_1_relu_2 = self.layer3.1.relu.forward(&add_8)?;  drop(add_8);
        // layer3.2: Bottleneck
        let layer3_2_conv1 = self.layer3.2.conv1.forward(&layer3_1_relu_2)?;
        let layer3_2_bn1 = self.layer3.2.bn1.forward(&layer3_2_conv1)?;  drop(layer3_2_conv1);
        let layer3_2_relu = self.layer3.2.relu.forward(&layer3_2_bn1)?;  drop(layer3_2_bn1);
        let layer3_2_conv2 = self.layer3.2.conv2.forward(&layer3_2_relu)?;  drop(layer3_2_relu);
        let layer3_2_bn2 = self.layer3.2.bn2.forward(&layer3_2_conv2)?;  drop(layer3_2_conv2);
        let layer3_2_relu_1 = self.layer3.2.relu.forward(&layer3_2_bn2)?;  drop(layer3_2_bn2);
        let layer3_2_conv3 = self.layer3.2.conv3.forward(&layer3_2_relu_1)?;  drop(layer3_2_relu_1);
        let layer3_2_bn3 = self.layer3.2.bn3.forward(&layer3_2_conv3)?;  drop(layer3_2_conv3);
        let add_9 = (&layer3_2_bn3 + &layer3_1_relu_2)?;  drop(layer3_2_bn3); drop(layer3_1_relu_2);
        let layer3_2_relu_2 = self.layer3.2.relu.forward(&add_9)?;  drop(add_9);
        // layer3.3: Bottleneck
        let layer3_3_conv1 = self.layer3.3.conv1.forward(&layer3_2_relu_2)?;
        let layer3_3_bn1 = self.layer3.3.bn1.forward(&layer3_3_conv1)?;  drop(layer3_3_conv1);
        let layer3_3_relu = self.layer3.3.relu.forward(&layer3_3_bn1)?;  drop(layer3_3_bn1);
        let layer3_3_conv2 = self.layer3.3.conv2.forward(&layer3_3_relu)?;  drop(layer3_3_relu);
        let layer3_3_bn2 = self.layer3.3.bn2.forward(&layer3_3_conv2)?;  drop(layer3_3_conv2);
        let layer3_3_relu_1 = self.layer3.3.relu.forward(&layer3_3_bn2)?;  drop(layer3_3_bn2);
        let layer3_3_conv3 = self.layer3.3.conv3.forward(&layer3_3_relu_1)?;  drop(layer3_3_relu_1);
        let layer3_3_bn3 = self.layer3.3.bn3.forward(&layer3_3_conv3)?;  drop(layer3_3_conv3);
        let add_10 = (&layer3_3_bn3 + &layer3_2_relu_2)?;  drop(layer3_3_bn3); drop(layer3_2_relu_2);
        let layer3_3_relu_2 = self.layer3.3.relu.forward(&add_10)?;  drop(add_10);
        // layer3.4: Bottleneck
        let layer3_4_conv1 = self.layer3.4.conv1.forward(&layer3_3_relu_2)?;
        let layer3_4_bn1 = self.layer3.4.bn1.forward(&layer3_4_conv1)?;  drop(layer3_4_conv1);
        let layer3_4_relu = self.layer3.4.relu.forward(&layer3_4_bn1)?;  drop(layer3_4_bn1);
        let layer3_4_conv2 = self.layer3.4.conv2.forward(&layer3_4_relu)?;  drop(layer3_4_relu);
        let layer3_4_bn2 = self.layer3.4.bn2.forward(&layer3_4_conv2)?;  drop(layer3_4_conv2);
        let layer3_4_relu_1 = self.layer3.4.relu.forward(&layer3_4_bn2)?;  drop(layer3_4_bn2);
        let layer3_4_conv3 = self.layer3.4.conv3.forward(&layer3_4_relu_1)?;  drop(layer3_4_relu_1);
        let layer3_4_bn3 = self.layer3.4.bn3.forward(&layer3_4_conv3)?;  drop(layer3_4_conv3);
        let add_11 = (&layer3_4_bn3 + &layer3_3_relu_2)?;  drop(layer3_4_bn3); drop(layer3_3_relu_2);
        let layer3_4_relu_2 = self.layer3.4.relu.forward(&add_11)?;  drop(add_11);
        // layer3.5: Bottleneck
        let layer3_5_conv1 = self.layer3.5.conv1.forward(&layer3_4_relu_2)?;
        let layer3_5_bn1 = self.layer3.5.bn1.forward(&layer3_5_conv1)?;  drop(layer3_5_conv1);
        let layer3_5_relu = self.layer3.5.relu.forward(&layer3_5_bn1)?;  drop(layer3_5_bn1);
        let layer3_5_conv2 = self.layer3.5.conv2.forward(&layer3_5_relu)?;  drop(layer3_5_relu);
        let layer3_5_bn2 = self.layer3.5.bn2.forward(&layer3_5_conv2)?;  drop(layer3_5_conv2);
        let layer3_5_relu_1 = self.layer3.5.relu.forward(&layer3_5_bn2)?;  drop(layer3_5_bn2);
        let layer3_5_conv3 = self.layer3.5.conv3.forward(&layer3_5_relu_1)?;  drop(layer3_5_relu_1);
        let layer3_5_bn3 = self.layer3.5.bn3.forward(&layer3_5_conv3)?;  drop(layer3_5_conv3);
        let add_12 = (&layer3_5_bn3 + &layer3_4_relu_2)?;  drop(layer3_5_bn3); drop(layer3_4_relu_2);
        let layer3_5_relu_2 = self.layer3.5.relu.forward(&add_12)?;  drop(add_12);
        // layer4.0: Bottleneck
        let layer4_0_conv1 = self.layer4.0.conv1.forward(&layer3_5_relu_2)?;
        let layer4_0_bn1 = self.layer4.0.bn1.forward(&layer4_0_conv1)?;  drop(layer4_0_conv1);
        let layer4_0_relu = self.layer4.0.relu.forward(&layer4_0_bn1)?;  drop(layer4_0_bn1);
        let layer4_0_conv2 = self.layer4.0.conv2.forward(&layer4_0_relu)?;  drop(layer4_0_relu);
        let layer4_0_bn2 = self.layer4.0.bn2.forward(&layer4_0_conv2)?;  drop(layer4_0_conv2);
        let layer4_0_relu_1 = self.layer4.0.relu.forward(&layer4_0_bn2)?;  drop(layer4_0_bn2);
        let layer4_0_conv3 = self.layer4.0.conv3.forward(&layer4_0_relu_1)?;  drop(layer4_0_relu_1);
        let layer4_0_bn3 = self.layer4.0.bn3.forward(&layer4_0_conv3)?;  drop(layer4_0_conv3);
        // layer4.0.downsample: Sequential
        let layer4_0_downsample_0 = self.layer4.0.downsample.0.forward(&layer3_5_relu_2)?;  drop(layer3_5_relu_2);
        let layer4_0_downsample_1 = self.layer4.0.downsample.1.forward(&layer4_0_downsample_0)?;  drop(layer4_0_downsample_0);
        // layer4.0: Bottleneck
        let add_13 = (&layer4_0_bn3 + &layer4_0_downsample_1)?;  drop(layer4_0_bn3); drop(layer4_0_downsample_1);
        let layer4_0_relu_2 = self.layer4.0.relu.forward(&add_13)?;  drop(add_13);
        // layer4.1: Bottleneck
        let layer4_1_conv1 = self.layer4.1.conv1.forward(&layer4_0_relu_2)?;
        let layer4_1_bn1 = self.layer4.1.bn1.forward(&layer4_1_conv1)?;  drop(layer4_1_conv1);
        let layer4_1_relu = self.layer4.1.relu.forward(&layer4_1_bn1)?;  drop(layer4_1_bn1);
        let layer4_1_conv2 = self.layer4.1.conv2.forward(&layer4_1_relu)?;  drop(layer4_1_relu);
        let layer4_1_bn2 = self.layer4.1.bn2.forward(&layer4_1_conv2)?;  drop(layer4_1_conv2);
        let layer4_1_relu_1 = self.layer4.1.relu.forward(&layer4_1_bn2)?;  drop(layer4_1_bn2);
        let layer4_1_conv3 = self.layer4.1.conv3.forward(&layer4_1_relu_1)?;  drop(layer4_1_relu_1);
        let layer4_1_bn3 = self.layer4.1.bn3.forward(&layer4_1_conv3)?;  drop(layer4_1_conv3);
        let add_14 = (&layer4_1_bn3 + &layer4_0_relu_2)?;  drop(layer4_1_bn3); drop(layer4_0_relu_2);
        let layer4_1_relu_2 = self.layer4.1.relu.forward(&add_14)?;  drop(add_14);
        // layer4.2: Bottleneck
        let layer4_2_conv1 = self.layer4.2.conv1.forward(&layer4_1_relu_2)?;
        let layer4_2_bn1 = self.layer4.2.bn1.forward(&layer4_2_conv1)?;  drop(layer4_2_conv1);
        let layer4_2_relu = self.layer4.2.relu.forward(&layer4_2_bn1)?;  drop(layer4_2_bn1);
        let layer4_2_conv2 = self.layer4.2.conv2.forward(&layer4_2_relu)?;  drop(layer4_2_relu);
        let layer4_2_bn2 = self.layer4.2.bn2.forward(&layer4_2_conv2)?;  drop(layer4_2_conv2);
        let layer4_2_relu_1 = self.layer4.2.relu.forward(&layer4_2_bn2)?;  drop(layer4_2_bn2);
        let layer4_2_conv3 = self.layer4.2.conv3.forward(&layer4_2_relu_1)?;  drop(layer4_2_relu_1);
        let layer4_2_bn3 = self.layer4.2.bn3.forward(&layer4_2_conv3)?;  drop(layer4_2_conv3);
        let add_15 = (&layer4_2_bn3 + &layer4_1_relu_2)?;  drop(layer4_2_bn3); drop(layer4_1_relu_2);
        let layer4_2_relu_2 = self.layer4.2.relu.forward(&add_15)?;  drop(add_15);
        // ResNet<Bottleneck>
        let avgpool = self.avgpool.forward(&layer4_2_relu_2)?;  drop(layer4_2_relu_2);
        let flatten = fx_nn::ops::flatten(&avgpool, 1, -1)?;  drop(avgpool);
        let fc = self.fc.forward(&flatten)?;  drop(flatten);
        Ok(fc)
    }
}
