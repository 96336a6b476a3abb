//! `Generated`, generated from a traced graph of 15 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `emb`.
    pub emb: fx_nn::nn::Embedding,
    /// `lstm`.
    pub lstm: fx_nn::nn::LSTM,
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
            emb: saved.take_submodule("emb")?,
            lstm: saved.take_submodule("lstm")?,
            fc: saved.take_submodule("fc")?,
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
    pub fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let emb = self.emb.forward(tokens)?;
        let lstm = self.lstm.forward(&emb, None)?;  drop(emb);
        let getitem = lstm.0.clone();
        let getitem_1 = lstm.1.clone();  drop(lstm);
        let getitem_2 = getitem_1.0.clone();
        drop(getitem_1);
        let getitem_4 = getitem_2.i(-2)?;
        let getitem_5 = getitem_2.i(-1)?;  drop(getitem_2);
        let cat = fx_nn::ops::cat(&[getitem_4.clone(), getitem_5.clone()], 1)?;  drop(getitem_4); drop(getitem_5);
        let fc = self.fc.forward(&cat)?;  drop(cat);
        let mean = getitem.mean(1)?;  drop(getitem);
        let sum = mean.sum_keepdim(-1)?;  drop(mean);
        let add = (&fc + &sum)?;  drop(fc); drop(sum);
        Ok(add)
    }
}
