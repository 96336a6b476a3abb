//! `Generated`, generated from a traced graph of 40 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `features`.
    pub features: Sequential,
    /// `avgpool`.
    pub avgpool: fx_nn::nn::AdaptiveAvgPool2d,
    /// `classifier`.
    pub classifier: Sequential2,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            features: Sequential::take(saved, "features")?,
            avgpool: saved.take_submodule("avgpool")?,
            classifier: Sequential2::take(saved, "classifier")?,
        })
    }
}

/// What is at `features`.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::MaxPool2d, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::MaxPool2d, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::MaxPool2d, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::MaxPool2d, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::Conv2d, pub fx_nn::nn::BatchNorm2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::MaxPool2d);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
            saved.take_submodule(&format!("{path}.4"))?,
            saved.take_submodule(&format!("{path}.5"))?,
            saved.take_submodule(&format!("{path}.6"))?,
            saved.take_submodule(&format!("{path}.7"))?,
            saved.take_submodule(&format!("{path}.8"))?,
            saved.take_submodule(&format!("{path}.9"))?,
            saved.take_submodule(&format!("{path}.10"))?,
            saved.take_submodule(&format!("{path}.11"))?,
            saved.take_submodule(&format!("{path}.12"))?,
            saved.take_submodule(&format!("{path}.13"))?,
            saved.take_submodule(&format!("{path}.14"))?,
            saved.take_submodule(&format!("{path}.15"))?,
            saved.take_submodule(&format!("{path}.16"))?,
            saved.take_submodule(&format!("{path}.17"))?,
            saved.take_submodule(&format!("{path}.18"))?,
            saved.take_submodule(&format!("{path}.19"))?,
            saved.take_submodule(&format!("{path}.20"))?,
            saved.take_submodule(&format!("{path}.21"))?,
            saved.take_submodule(&format!("{path}.22"))?,
            saved.take_submodule(&format!("{path}.23"))?,
            saved.take_submodule(&format!("{path}.24"))?,
            saved.take_submodule(&format!("{path}.25"))?,
            saved.take_submodule(&format!("{path}.26"))?,
            saved.take_submodule(&format!("{path}.27"))?,
            saved.take_submodule(&format!("{path}.28"))?,
        ))
    }
}

/// What is at `classifier`.
#[derive(Module)]
pub struct Sequential2(pub fx_nn::nn::Linear, pub fx_nn::nn::ReLU, pub fx_nn::nn::Dropout, pub fx_nn::nn::Linear, pub fx_nn::nn::ReLU, pub fx_nn::nn::Dropout, pub fx_nn::nn::Linear);

impl Sequential2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential2(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
            saved.take_submodule(&format!("{path}.4"))?,
            saved.take_submodule(&format!("{path}.5"))?,
            saved.take_submodule(&format!("{path}.6"))?,
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
        // features: Sequential
        let features_0 = self.features.0.forward(x)?;
        let features_1 = self.features.1.forward(&features_0)?;  drop(features_0);
        let features_2 = self.features.2.forward(&features_1)?;  drop(features_1);
        let features_3 = self.features.3.forward(&features_2)?;  drop(features_2);
        let features_4 = self.features.4.forward(&features_3)?;  drop(features_3);
        let features_5 = self.features.5.forward(&features_4)?;  drop(features_4);
        let features_6 = self.features.6.forward(&features_5)?;  drop(features_5);
        let features_7 = self.features.7.forward(&features_6)?;  drop(features_6);
        let features_8 = self.features.8.forward(&features_7)?;  drop(features_7);
        let features_9 = self.features.9.forward(&features_8)?;  drop(features_8);
        let features_10 = self.features.10.forward(&features_9)?;  drop(features_9);
        let features_11 = self.features.11.forward(&features_10)?;  drop(features_10);
        let features_12 = self.features.12.forward(&features_11)?;  drop(features_11);
        let features_13 = self.features.13.forward(&features_12)?;  drop(features_12);
        let features_14 = self.features.14.forward(&features_13)?;  drop(features_13);
        let features_15 = self.features.15.forward(&features_14)?;  drop(features_14);
        let features_16 = self.features.16.forward(&features_15)?;  drop(features_15);
        let features_17 = self.features.17.forward(&features_16)?;  drop(features_16);
        let features_18 = self.features.18.forward(&features_17)?;  drop(features_17);
        let features_19 = self.features.19.forward(&features_18)?;  drop(features_18);
        let features_20 = self.features.20.forward(&features_19)?;  drop(features_19);
        let features_21 = self.features.21.forward(&features_20)?;  drop(features_20);
        let features_22 = self.features.22.forward(&features_21)?;  drop(features_21);
        let features_23 = self.features.23.forward(&features_22)?;  drop(features_22);
        let features_24 = self.features.24.forward(&features_23)?;  drop(features_23);
        let features_25 = self.features.25.forward(&features_24)?;  drop(features_24);
        let features_26 = self.features.26.forward(&features_25)?;  drop(features_25);
        let features_27 = self.features.27.forward(&features_26)?;  drop(features_26);
        let features_28 = self.features.28.forward(&features_27)?;  drop(features_27);
        // Vgg
        let avgpool = self.avgpool.forward(&features_28)?;  drop(features_28);
        let flatten = fx_nn::ops::flatten(&avgpool, 1, -1)?;  drop(avgpool);
        // classifier: Sequential
        let classifier_0 = self.classifier.0.forward(&flatten)?;  drop(flatten);
        let classifier_1 = self.classifier.1.forward(&classifier_0)?;  drop(classifier_0);
        let classifier_2 = self.classifier.2.forward(&classifier_1)?;  drop(classifier_1);
        let classifier_3 = self.classifier.3.forward(&classifier_2)?;  drop(classifier_2);
        let classifier_4 = self.classifier.4.forward(&classifier_3)?;  drop(classifier_3);
        let classifier_5 = self.classifier.5.forward(&classifier_4)?;  drop(classifier_4);
        let classifier_6 = self.classifier.6.forward(&classifier_5)?;  drop(classifier_5);
        Ok(classifier_6)
    }
}
