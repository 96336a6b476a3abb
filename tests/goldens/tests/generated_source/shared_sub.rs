//! `Generated`, generated from a traced graph of 11 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `shared`.
    pub shared: fx_nn::nn::Linear,
    /// `other`.
    pub other: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            shared: saved.take_submodule("shared")?,
            other: saved.take_submodule("other")?,
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
        let shared = self.shared.forward(x)?;
        let relu = shared.relu()?;  drop(shared);
        let shared_1 = self.shared.forward(&relu)?;  drop(relu);
        let relu_1 = shared_1.relu()?;  drop(shared_1);
        let shared_2 = self.shared.forward(&relu_1)?;  drop(relu_1);
        let other = self.other.forward(&shared_2)?;  drop(shared_2);
        let shared_weight = &self.shared.weight;
        let sum = shared_weight.sum(..)?;
        let add = (&other + &sum)?;  drop(other); drop(sum);
        Ok(add)
    }
}
