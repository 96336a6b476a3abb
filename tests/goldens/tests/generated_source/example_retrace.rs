//! `Generated`, generated from a traced graph of 8 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `head`.
    pub head: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            head: saved.take_submodule("head")?,
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
        // body: GraphModule
        let mean = x.mean(..)?;
        let sub = (x - &mean)?;  drop(mean);
        let exp = sub.exp()?;
        let sum = exp.sum(..)?;  drop(exp);
        let truediv = (&sub / &sum)?;  drop(sub); drop(sum);
        // Model
        let head = self.head.forward(&truediv)?;  drop(truediv);
        Ok(head)
    }
}
