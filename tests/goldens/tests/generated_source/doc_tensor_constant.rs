//! `Generated`, generated from a traced graph of 5 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `_tensor_constant0`.
    #[module(buffer)] pub _tensor_constant0: Tensor,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            _tensor_constant0: FromValue::from_value(saved.buffer("_tensor_constant0")?)?,
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
        let relu = fx_nn::ops::relu(x)?;
        let _tensor_constant0 = &self._tensor_constant0;
        let add = (&relu + _tensor_constant0)?;  drop(relu);
        Ok(add)
    }
}
