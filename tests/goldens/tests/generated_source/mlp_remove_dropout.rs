//! `Generated`, generated from a traced graph of 8 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `fc1`.
    pub fc1: fx_nn::nn::Linear,
    /// `fc2`.
    pub fc2: fx_nn::nn::Linear,
    /// `fc3`.
    pub fc3: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            fc1: saved.take_submodule("fc1")?,
            fc2: saved.take_submodule("fc2")?,
            fc3: saved.take_submodule("fc3")?,
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
        let fc1 = self.fc1.forward(x)?;
        let relu = fx_nn::ops::relu(&fc1)?;  drop(fc1);
        let fc2 = self.fc2.forward(&relu)?;  drop(relu);
        let tanh = fx_nn::ops::tanh(&fc2)?;  drop(fc2);
        let fc3 = self.fc3.forward(&tanh)?;  drop(tanh);
        let log_softmax = fx_nn::ops::log_softmax(&fc3, -1)?;  drop(fc3);
        Ok(log_softmax)
    }
}
