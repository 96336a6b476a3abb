//! `Generated`, generated from a traced graph of 8 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `linear`.
    pub linear: fx_nn::nn::Linear,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            linear: saved.take_submodule("linear")?,
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
    pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let linear_weight = &self.linear.weight;
        let add = (x + linear_weight)?;
        let linear = self.linear.forward(&add)?;  drop(add);
        let relu = linear.relu()?;  drop(linear);
        let sum = fx_nn::ops::sum(&relu, -1, false)?;  drop(relu);
        let topk = fx_nn::ops::topk(&sum, 3, -1, true, true)?;  drop(sum);
        Ok(topk)
    }
}
