//! `Generated`, generated from a traced graph of 155 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `features`.
    pub features: Sequential,
    /// `classifier`.
    pub classifier: Sequential5,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            features: Sequential::take(saved, "features")?,
            classifier: Sequential5::take(saved, "classifier")?,
        })
    }
}

/// What is at `features`.
#[derive(Module)]
pub struct Sequential(pub Sequential2, pub InvertedResidual, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub InvertedResidual2, pub Sequential2);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            Sequential2::take(saved, &format!("{path}.0"))?,
            InvertedResidual::take(saved, &format!("{path}.1"))?,
            InvertedResidual2::take(saved, &format!("{path}.2"))?,
            InvertedResidual2::take(saved, &format!("{path}.3"))?,
            InvertedResidual2::take(saved, &format!("{path}.4"))?,
            InvertedResidual2::take(saved, &format!("{path}.5"))?,
            InvertedResidual2::take(saved, &format!("{path}.6"))?,
            InvertedResidual2::take(saved, &format!("{path}.7"))?,
            InvertedResidual2::take(saved, &format!("{path}.8"))?,
            InvertedResidual2::take(saved, &format!("{path}.9"))?,
            InvertedResidual2::take(saved, &format!("{path}.10"))?,
            InvertedResidual2::take(saved, &format!("{path}.11"))?,
            InvertedResidual2::take(saved, &format!("{path}.12"))?,
            InvertedResidual2::take(saved, &format!("{path}.13"))?,
            InvertedResidual2::take(saved, &format!("{path}.14"))?,
            InvertedResidual2::take(saved, &format!("{path}.15"))?,
            InvertedResidual2::take(saved, &format!("{path}.16"))?,
            InvertedResidual2::take(saved, &format!("{path}.17"))?,
            Sequential2::take(saved, &format!("{path}.18"))?,
        ))
    }
}

/// What is at `features.0`, `features.1.conv.0`, `features.2.conv.0`, `features.2.conv.1` and 31 more places.
#[derive(Module)]
pub struct Sequential2(pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU6);

impl Sequential2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential2(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
        ))
    }
}

/// What is at `features.1`.
#[derive(Module)]
pub struct InvertedResidual {
    /// `conv`.
    pub conv: Sequential3,
}

impl InvertedResidual {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(InvertedResidual {
            conv: Sequential3::take(saved, &format!("{path}.conv"))?,
        })
    }
}

/// What is at `features.1.conv`.
#[derive(Module)]
pub struct Sequential3(pub Sequential2, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d);

impl Sequential3 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential3(
            Sequential2::take(saved, &format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
        ))
    }
}

/// What is at `features.2`, `features.3`, `features.4`, `features.5` and 12 more places.
#[derive(Module)]
pub struct InvertedResidual2 {
    /// `conv`.
    pub conv: Sequential4,
}

impl InvertedResidual2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(InvertedResidual2 {
            conv: Sequential4::take(saved, &format!("{path}.conv"))?,
        })
    }
}

/// What is at `features.2.conv`, `features.3.conv`, `features.4.conv`, `features.5.conv` and 12 more places.
#[derive(Module)]
pub struct Sequential4(pub Sequential2, pub Sequential2, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d);

impl Sequential4 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential4(
            Sequential2::take(saved, &format!("{path}.0"))?,
            Sequential2::take(saved, &format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
        ))
    }
}

/// What is at `classifier`.
#[derive(Module)]
pub struct Sequential5(pub fx_nn::nn::Dropout, pub fx_nn::nn::Linear);

impl Sequential5 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential5(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
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
        // features.0: Sequential
        let features_0_0 = self.features.0.0.forward(x)?;
        let features_0_1 = self.features.0.1.forward(&features_0_0)?;  drop(features_0_0);
        let features_0_2 = self.features.0.2.forward(&features_0_1)?;  drop(features_0_1);
        // features.1.conv.0: Sequential
        let features_1_conv_0_0 = self.features.1.conv.0.0.forward(&features_0_2)?;  drop(features_0_2);
        let features_1_conv_0_1 = self.features.1.conv.0.1.forward(&features_1_conv_0_0)?;  drop(features_1_conv_0_0);
        let features_1_conv_0_2 = self.features.1.conv.0.2.forward(&features_1_conv_0_1)?;  drop(features_1_conv_0_1);
        // features.1.conv: Sequential
        let features_1_conv_1 = self.features.1.conv.1.forward(&features_1_conv_0_2)?;  drop(features_1_conv_0_2);
        let features_1_conv_2 = self.features.1.conv.2.forward(&features_1_conv_1)?;  drop(features_1_conv_1);
        // features.2.conv.0: Sequential
        let features_2_conv_0_0 = self.features.2.conv.0.0.forward(&features_1_conv_2)?;  drop(features_1_conv_2);
        let features_2_conv_0_1 = self.features.2.conv.0.1.forward(&features_2_conv_0_0)?;  drop(features_2_conv_0_0);
        let features_2_conv_0_2 = self.features.2.conv.0.2.forward(&features_2_conv_0_1)?;  drop(features_2_conv_0_1);
        // features.2.conv.1: Sequential
        let features_2_conv_1_0 = self.features.2.conv.1.0.forward(&features_2_conv_0_2)?;  drop(features_2_conv_0_2);
        let features_2_conv_1_1 = self.features.2.conv.1.1.forward(&features_2_conv_1_0)?;  drop(features_2_conv_1_0);
        let features_2_conv_1_2 = self.features.2.conv.1.2.forward(&features_2_conv_1_1)?;  drop(features_2_conv_1_1);
        // features.2.conv: Sequential
        let features_2_conv_2 = self.features.2.conv.2.forward(&features_2_conv_1_2)?;  drop(features_2_conv_1_2);
        let features_2_conv_3 = self.features.2.conv.3.forward(&features_2_conv_2)?;  drop(features_2_conv_2);
        // features.3.conv.0: Sequential
        let features_3_conv_0_0 = self.features.3.conv.0.0.forward(&features_2_conv_3)?;
        let features_3_conv_0_1 = self.features.3.conv.0.1.forward(&features_3_conv_0_0)?;  drop(features_3_conv_0_0);
        let features_3_conv_0_2 = self.features.3.conv.0.2.forward(&features_3_conv_0_1)?;  drop(features_3_conv_0_1);
        // features.3.conv.1: Sequential
        let features_3_conv_1_0 = self.features.3.conv.1.0.forward(&features_3_conv_0_2)?;  drop(features_3_conv_0_2);
        let features_3_conv_1_1 = self.features.3.conv.1.1.forward(&features_3_conv_1_0)?;  drop(features_3_conv_1_0);
        let features_3_conv_1_2 = self.features.3.conv.1.2.forward(&features_3_conv_1_1)?;  drop(features_3_conv_1_1);
        // features.3.conv: Sequential
        let features_3_conv_2 = self.features.3.conv.2.forward(&features_3_conv_1_2)?;  drop(features_3_conv_1_2);
        let features_3_conv_3 = self.features.3.conv.3.forward(&features_3_conv_2)?;  drop(features_3_conv_2);
        // features.3: InvertedResidual
        let add = (&features_2_conv_3 + &features_3_conv_3)?;  drop(features_2_conv_3); drop(features_3_conv_3);
        // features.4.conv.0: Sequential
        let features_4_conv_0_0 = self.features.4.conv.0.0.forward(&add)?;  drop(add);
        let features_4_conv_0_1 = self.features.4.conv.0.1.forward(&features_4_conv_0_0)?;  drop(features_4_conv_0_0);
        let features_4_conv_0_2 = self.features.4.conv.0.2.forward(&features_4_conv_0_1)?;  drop(features_4_conv_0_1);
        // features.4.conv.1: Sequential
        let features_4_conv_1_0 = self.features.4.conv.1.0.forward(&features_4_conv_0_2)?;  drop(features_4_conv_0_2);
        let features_4_conv_1_1 = self.features.4.conv.1.1.forward(&features_4_conv_1_0)?;  drop(features_4_conv_1_0);
        let features_4_conv_1_2 = self.features.4.conv.1.2.forward(&features_4_conv_1_1)?;  drop(features_4_conv_1_1);
        // features.4.conv: Sequential
        let features_4_conv_2 = self.features.4.conv.2.forward(&features_4_conv_1_2)?;  drop(features_4_conv_1_2);
        let features_4_conv_3 = self.features.4.conv.3.forward(&features_4_conv_2)?;  drop(features_4_conv_2);
        // features.5.conv.0: Sequential
        let features_5_conv_0_0 = self.features.5.conv.0.0.forward(&features_4_conv_3)?;
        let features_5_conv_0_1 = self.features.5.conv.0.1.forward(&features_5_conv_0_0)?;  drop(features_5_conv_0_0);
        let features_5_conv_0_2 = self.features.5.conv.0.2.forward(&features_5_conv_0_1)?;  drop(features_5_conv_0_1);
        // features.5.conv.1: Sequential
        let features_5_conv_1_0 = self.features.5.conv.1.0.forward(&features_5_conv_0_2)?;  drop(features_5_conv_0_2);
        let features_5_conv_1_1 = self.features.5.conv.1.1.forward(&features_5_conv_1_0)?;  drop(features_5_conv_1_0);
        let features_5_conv_1_2 = self.features.5.conv.1.2.forward(&features_5_conv_1_1)?;  drop(features_5_conv_1_1);
        // features.5.conv: Sequential
        let features_5_conv_2 = self.features.5.conv.2.forward(&features_5_conv_1_2)?;  drop(features_5_conv_1_2);
        let features_5_conv_3 = self.features.5.conv.3.forward(&features_5_conv_2)?;  drop(features_5_conv_2);
        // features.5: InvertedResidual
        let add_1 = (&features_4_conv_3 + &features_5_conv_3)?;  drop(features_4_conv_3); drop(features_5_conv_3);
        // features.6.conv.0: Sequential
        let features_6_conv_0_0 = self.features.6.conv.0.0.forward(&add_1)?;
        let features_6_conv_0_1 = self.features.6.conv.0.1.forward(&features_6_conv_0_0)?;  drop(features_6_conv_0_0);
        let features_6_conv_0_2 = self.features.6.conv.0.2.forward(&features_6_conv_0_1)?;  drop(features_6_conv_0_1);
        // features.6.conv.1: Sequential
        let features_6_conv_1_0 = self.features.6.conv.1.0.forward(&features_6_conv_0_2)?;  drop(features_6_conv_0_2);
        let features_6_conv_1_1 = self.features.6.conv.1.1.forward(&features_6_conv_1_0)?;  drop(features_6_conv_1_0);
        let features_6_conv_1_2 = self.features.6.conv.1.2.forward(&features_6_conv_1_1)?;  drop(features_6_conv_1_1);
        // features.6.conv: Sequential
        let features_6_conv_2 = self.features.6.conv.2.forward(&features_6_conv_1_2)?;  drop(features_6_conv_1_2);
        let features_6_conv_3 = self.features.6.conv.3.forward(&features_6_conv_2)?;  drop(features_6_conv_2);
        // features.6: InvertedResidual
        let add_2 = (&add_1 + &features_6_conv_3)?;  drop(add_1); drop(features_6_conv_3);
        // features.7.conv.0: Sequential
        let features_7_conv_0_0 = self.features.7.conv.0.0.forward(&add_2)?;  drop(add_2);
        let features_7_conv_0_1 = self.features.7.conv.0.1.forward(&features_7_conv_0_0)?;  drop(features_7_conv_0_0);
        let features_7_conv_0_2 = self.features.7.conv.0.2.forward(&features_7_conv_0_1)?;  drop(features_7_conv_0_1);
        // features.7.conv.1: Sequential
        let features_7_conv_1_0 = self.features.7.conv.1.0.forward(&features_7_conv_0_2)?;  drop(features_7_conv_0_2);
        let features_7_conv_1_1 = self.features.7.conv.1.1.forward(&features_7_conv_1_0)?;  drop(features_7_conv_1_0);
        let features_7_conv_1_2 = self.features.7.conv.1.2.forward(&features_7_conv_1_1)?;  drop(features_7_conv_1_1);
        // features.7.conv: Sequential
        let features_7_conv_2 = self.features.7.conv.2.forward(&features_7_conv_1_2)?;  drop(features_7_conv_1_2);
        let features_7_conv_3 = self.features.7.conv.3.forward(&features_7_conv_2)?;  drop(features_7_conv_2);
        // features.8.conv.0: Sequential
        let features_8_conv_0_0 = self.features.8.conv.0.0.forward(&features_7_conv_3)?;
        let features_8_conv_0_1 = self.features.8.conv.0.1.forward(&features_8_conv_0_0)?;  drop(features_8_conv_0_0);
        let features_8_conv_0_2 = self.features.8.conv.0.2.forward(&features_8_conv_0_1)?;  drop(features_8_conv_0_1);
        // features.8.conv.1: Sequential
        let features_8_conv_1_0 = self.features.8.conv.1.0.forward(&features_8_conv_0_2)?;  drop(features_8_conv_0_2);
        let features_8_conv_1_1 = self.features.8.conv.1.1.forward(&features_8_conv_1_0)?;  drop(features_8_conv_1_0);
        let features_8_conv_1_2 = self.features.8.conv.1.2.forward(&features_8_conv_1_1)?;  drop(features_8_conv_1_1);
        // features.8.conv: Sequential
        let features_8_conv_2 = self.features.8.conv.2.forward(&features_8_conv_1_2)?;  drop(features_8_conv_1_2);
        let features_8_conv_3 = self.features.8.conv.3.forward(&features_8_conv_2)?;  drop(features_8_conv_2);
        // features.8: InvertedResidual
        let add_3 = (&features_7_conv_3 + &features_8_conv_3)?;  drop(features_7_conv_3); drop(features_8_conv_3);
        // features.9.conv.0: Sequential
        let features_9_conv_0_0 = self.features.9.conv.0.0.forward(&add_3)?;
        let features_9_conv_0_1 = self.features.9.conv.0.1.forward(&features_9_conv_0_0)?;  drop(features_9_conv_0_0);
        let features_9_conv_0_2 = self.features.9.conv.0.2.forward(&features_9_conv_0_1)?;  drop(features_9_conv_0_1);
        // features.9.conv.1: Sequential
        let features_9_conv_1_0 = self.features.9.conv.1.0.forward(&features_9_conv_0_2)?;  drop(features_9_conv_0_2);
        let features_9_conv_1_1 = self.features.9.conv.1.1.forward(&features_9_conv_1_0)?;  drop(features_9_conv_1_0);
        let features_9_conv_1_2 = self.features.9.conv.1.2.forward(&features_9_conv_1_1)?;  drop(features_9_conv_1_1);
        // features.9.conv: Sequential
        let features_9_conv_2 = self.features.9.conv.2.forward(&features_9_conv_1_2)?;  drop(features_9_conv_1_2);
        let features_9_conv_3 = self.features.9.conv.3.forward(&features_9_conv_2)?;  drop(features_9_conv_2);
        // features.9: InvertedResidual
        let add_4 = (&add_3 + &features_9_conv_3)?;  drop(add_3); drop(features_9_conv_3);
        // features.10.conv.0: Sequential
        let features_10_conv_0_0 = self.features.10.conv.0.0.forward(&add_4)?;
        let features_10_conv_0_1 = self.features.10.conv.0.1.forward(&features_10_conv_0_0)?;  drop(features_10_conv_0_0);
        let features_10_conv_0_2 = self.features.10.conv.0.2.forward(&features_10_conv_0_1)?;  drop(features_10_conv_0_1);
        // features.10.conv.1: Sequential
        let features_10_conv_1_0 = self.features.10.conv.1.0.forward(&features_10_conv_0_2)?;  drop(features_10_conv_0_2);
        let features_10_conv_1_1 = self.features.10.conv.1.1.forward(&features_10_conv_1_0)?;  drop(features_10_conv_1_0);
        let features_10_conv_1_2 = self.features.10.conv.1.2.forward(&features_10_conv_1_1)?;  drop(features_10_conv_1_1);
        // features.10.conv: Sequential
        let features_10_conv_2 = self.features.10.conv.2.forward(&features_10_conv_1_2)?;  drop(features_10_conv_1_2);
        let features_10_conv_3 = self.features.10.conv.3.forward(&features_10_conv_2)?;  drop(features_10_conv_2);
        // features.10: InvertedResidual
        let add_5 = (&add_4 + &features_10_conv_3)?;  drop(add_4); drop(features_10_conv_3);
        // features.11.conv.0: Sequential
        let features_11_conv_0_0 = self.features.11.conv.0.0.forward(&add_5)?;  drop(add_5);
        let features_11_conv_0_1 = self.features.11.conv.0.1.forward(&features_11_conv_0_0)?;  drop(features_11_conv_0_0);
        let features_11_conv_0_2 = self.features.11.conv.0.2.forward(&features_11_conv_0_1)?;  drop(features_11_conv_0_1);
        // features.11.conv.1: Sequential
        let features_11_conv_1_0 = self.features.11.conv.1.0.forward(&features_11_conv_0_2)?;  drop(features_11_conv_0_2);
        let features_11_conv_1_1 = self.features.11.conv.1.1.forward(&features_11_conv_1_0)?;  drop(features_11_conv_1_0);
        let features_11_conv_1_2 = self.features.11.conv.1.2.forward(&features_11_conv_1_1)?;  drop(features_11_conv_1_1);
        // features.11.conv: Sequential
        let features_11_conv_2 = self.features.11.conv.2.forward(&features_11_conv_1_2)?;  drop(features_11_conv_1_2);
        let features_11_conv_3 = self.features.11.conv.3.forward(&features_11_conv_2)?;  drop(features_11_conv_2);
        // features.12.conv.0: Sequential
        let features_12_conv_0_0 = self.features.12.conv.0.0.forward(&features_11_conv_3)?;
        let features_12_conv_0_1 = self.features.12.conv.0.1.forward(&features_12_conv_0_0)?;  drop(features_12_conv_0_0);
        let features_12_conv_0_2 = self.features.12.conv.0.2.forward(&features_12_conv_0_1)?;  drop(features_12_conv_0_1);
        // features.12.conv.1: Sequential
        let features_12_conv_1_0 = self.features.12.conv.1.0.forward(&features_12_conv_0_2)?;  drop(features_12_conv_0_2);
        let features_12_conv_1_1 = self.features.12.conv.1.1.forward(&features_12_conv_1_0)?;  drop(features_12_conv_1_0);
        let features_12_conv_1_2 = self.features.12.conv.1.2.forward(&features_12_conv_1_1)?;  drop(features_12_conv_1_1);
        // features.12.conv: Sequential
        let features_12_conv_2 = self.features.12.conv.2.forward(&features_12_conv_1_2)?;  drop(features_12_conv_1_2);
        let features_12_conv_3 = self.features.12.conv.3.forward(&features_12_conv_2)?;  drop(features_12_conv_2);
        // features.12: InvertedResidual
        let add_6 = (&features_11_conv_3 + &features_12_conv_3)?;  drop(features_11_conv_3); drop(features_12_conv_3);
        // features.13.conv.0: Sequential
        let features_13_conv_0_0 = self.features.13.conv.0.0.forward(&add_6)?;
        let features_13_conv_0_1 = self.features.13.conv.0.1.forward(&features_13_conv_0_0)?;  drop(features_13_conv_0_0);
        let features_13_conv_0_2 = self.features.13.conv.0.2.forward(&features_13_conv_0_1)?;  drop(features_13_conv_0_1);
        // features.13.conv.1: Sequential
        let features_13_conv_1_0 = self.features.13.conv.1.0.forward(&features_13_conv_0_2)?;  drop(features_13_conv_0_2);
        let features_13_conv_1_1 = self.features.13.conv.1.1.forward(&features_13_conv_1_0)?;  drop(features_13_conv_1_0);
        let features_13_conv_1_2 = self.features.13.conv.1.2.forward(&features_13_conv_1_1)?;  drop(features_13_conv_1_1);
        // features.13.conv: Sequential
        let features_13_conv_2 = self.features.13.conv.2.forward(&features_13_conv_1_2)?;  drop(features_13_conv_1_2);
        let features_13_conv_3 = self.features.13.conv.3.forward(&features_13_conv_2)?;  drop(features_13_conv_2);
        // features.13: InvertedResidual
        let add_7 = (&add_6 + &features_13_conv_3)?;  drop(add_6); drop(features_13_conv_3);
        // features.14.conv.0: Sequential
        let features_14_conv_0_0 = self.features.14.conv.0.0.forward(&add_7)?;  drop(add_7);
        let features_14_conv_0_1 = self.features.14.conv.0.1.forward(&features_14_conv_0_0)?;  drop(features_14_conv_0_0);
        let features_14_conv_0_2 = self.features.14.conv.0.2.forward(&features_14_conv_0_1)?;  drop(features_14_conv_0_1);
        // features.14.conv.1: Sequential
        let features_14_conv_1_0 = self.features.14.conv.1.0.forward(&features_14_conv_0_2)?;  drop(features_14_conv_0_2);
        let features_14_conv_1_1 = self.features.14.conv.1.1.forward(&features_14_conv_1_0)?;  drop(features_14_conv_1_0);
        let features_14_conv_1_2 = self.features.14.conv.1.2.forward(&features_14_conv_1_1)?;  drop(features_14_conv_1_1);
        // features.14.conv: Sequential
        let features_14_conv_2 = self.features.14.conv.2.forward(&features_14_conv_1_2)?;  drop(features_14_conv_1_2);
        let features_14_conv_3 = self.features.14.conv.3.forward(&features_14_conv_2)?;  drop(features_14_conv_2);
        // features.15.conv.0: Sequential
        let features_15_conv_0_0 = self.features.15.conv.0.0.forward(&features_14_conv_3)?;
        let features_15_conv_0_1 = self.features.15.conv.0.1.forward(&features_15_conv_0_0)?;  drop(features_15_conv_0_0);
        let features_15_conv_0_2 = self.features.15.conv.0.2.forward(&features_15_conv_0_1)?;  drop(features_15_conv_0_1);
        // features.15.conv.1: Sequential
        let features_15_conv_1_0 = self.features.15.conv.1.0.forward(&features_15_conv_0_2)?;  drop(features_15_conv_0_2);
        let features_15_conv_1_1 = self.features.15.conv.1.1.forward(&features_15_conv_1_0)?;  drop(features_15_conv_1_0);
        let features_15_conv_1_2 = self.features.15.conv.1.2.forward(&features_15_conv_1_1)?;  drop(features_15_conv_1_1);
        // features.15.conv: Sequential
        let features_15_conv_2 = self.features.15.conv.2.forward(&features_15_conv_1_2)?;  drop(features_15_conv_1_2);
        let features_15_conv_3 = self.features.15.conv.3.forward(&features_15_conv_2)?;  drop(features_15_conv_2);
        // features.15: InvertedResidual
        let add_8 = (&features_14_conv_3 + &features_15_conv_3)?;  drop(features_14_conv_3); drop(features_15_conv_3);
        // features.16.conv.0: Sequential
        let features_16_conv_0_0 = self.features.16.conv.0.0.forward(&add_8)?;
        let features_16_conv_0_1 = self.features.16.conv.0.1.forward(&features_16_conv_0_0)?;  drop(features_16_conv_0_0);
        let features_16_conv_0_2 = self.features.16.conv.0.2.forward(&features_16_conv_0_1)?;  drop(features_16_conv_0_1);
        // features.16.conv.1: Sequential
        let features_16_conv_1_0 = self.features.16.conv.1.0.forward(&features_16_conv_0_2)?;  drop(features_16_conv_0_2);
        let features_16_conv_1_1 = self.features.16.conv.1.1.forward(&features_16_conv_1_0)?;  drop(features_16_conv_1_0);
        let features_16_conv_1_2 = self.features.16.conv.1.2.forward(&features_16_conv_1_1)?;  drop(features_16_conv_1_1);
        // features.16.conv: Sequential
        let features_16_conv_2 = self.features.16.conv.2.forward(&features_16_conv_1_2)?;  drop(features_16_conv_1_2);
        let features_16_conv_3 = self.features.16.conv.3.forward(&features_16_conv_2)?;  drop(features_16_conv_2);
        // features.16: InvertedResidual
        let add_9 = (&add_8 + &features_16_conv_3)?;  drop(add_8); drop(features_16_conv_3);
        // features.17.conv.0: Sequential
        let features_17_conv_0_0 = self.features.17.conv.0.0.forward(&add_9)?;  drop(add_9);
        let features_17_conv_0_1 = self.features.17.conv.0.1.forward(&features_17_conv_0_0)?;  drop(features_17_conv_0_0);
        let features_17_conv_0_2 = self.features.17.conv.0.2.forward(&features_17_conv_0_1)?;  drop(features_17_conv_0_1);
        // features.17.conv.1: Sequential
        let features_17_conv_1_0 = self.features.17.conv.1.0.forward(&features_17_conv_0_2)?;  drop(features_17_conv_0_2);
        let features_17_conv_1_1 = self.features.17.conv.1.1.forward(&features_17_conv_1_0)?;  drop(features_17_conv_1_0);
        let features_17_conv_1_2 = self.features.17.conv.1.2.forward(&features_17_conv_1_1)?;  drop(features_17_conv_1_1);
        // features.17.conv: Sequential
        let features_17_conv_2 = self.features.17.conv.2.forward(&features_17_conv_1_2)?;  drop(features_17_conv_1_2);
        let features_17_conv_3 = self.features.17.conv.3.forward(&features_17_conv_2)?;  drop(features_17_conv_2);
        // features.18: Sequential
        let features_18_0 = self.features.18.0.forward(&features_17_conv_3)?;  drop(features_17_conv_3);
        let features_18_1 = self.features.18.1.forward(&features_18_0)?;  drop(features_18_0);
        let features_18_2 = self.features.18.2.forward(&features_18_1)?;  drop(features_18_1);
        // MobileNetV2
        let adaptive_avg_pool2d = fx_nn::ops::adaptive_avg_pool2d(&features_18_2, (1, 1))?;  drop(features_18_2);
        let flatten = fx_nn::ops::flatten(&adaptive_avg_pool2d, 1, -1)?;  drop(adaptive_avg_pool2d);
        // classifier: Sequential
        let classifier_0 = self.classifier.0.forward(&flatten)?;  drop(flatten);
        let classifier_1 = self.classifier.1.forward(&classifier_0)?;  drop(classifier_0);
        Ok(classifier_1)
    }
}
