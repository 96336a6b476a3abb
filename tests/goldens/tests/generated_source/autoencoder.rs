//! `Generated`, generated from a traced graph of 14 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `encoder`.
    pub encoder: Sequential,
    /// `to_latent`.
    pub to_latent: fx_nn::nn::Linear,
    /// `from_latent`.
    pub from_latent: fx_nn::nn::Linear,
    /// `decoder`.
    pub decoder: Sequential2,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            encoder: Sequential::take(saved, "encoder")?,
            to_latent: saved.take_submodule("to_latent")?,
            from_latent: saved.take_submodule("from_latent")?,
            decoder: Sequential2::take(saved, "decoder")?,
        })
    }
}

/// What is at `encoder`.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Conv2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::Conv2d, pub fx_nn::nn::ReLU);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
        ))
    }
}

/// What is at `decoder`.
#[derive(Module)]
pub struct Sequential2(pub fx_nn::nn::ConvTranspose2d, pub fx_nn::nn::ReLU, pub fx_nn::nn::ConvTranspose2d, pub fx_nn::nn::Sigmoid);

impl Sequential2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential2(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
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
    pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        // encoder: Sequential
        let encoder_0 = self.encoder.0.forward(x)?;
        let encoder_1 = self.encoder.1.forward(&encoder_0)?;  drop(encoder_0);
        let encoder_2 = self.encoder.2.forward(&encoder_1)?;  drop(encoder_1);
        let encoder_3 = self.encoder.3.forward(&encoder_2)?;  drop(encoder_2);
        // AutoEncoder
        let flatten = fx_nn::ops::flatten(&encoder_3, 1, -1)?;  drop(encoder_3);
        let to_latent = self.to_latent.forward(&flatten)?;  drop(flatten);
        let from_latent = self.from_latent.forward(&to_latent)?;
        let view = from_latent.view((-1, 16, 4, 4))?;  drop(from_latent);
        // decoder: Sequential
        let decoder_0 = self.decoder.0.forward(&view)?;  drop(view);
        let decoder_1 = self.decoder.1.forward(&decoder_0)?;  drop(decoder_0);
        let decoder_2 = self.decoder.2.forward(&decoder_1)?;  drop(decoder_1);
        let decoder_3 = self.decoder.3.forward(&decoder_2)?;  drop(decoder_2);
        Ok((decoder_3, to_latent))
    }
}
