//! `Generated`, generated from a traced graph of 14 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// Tells it from others.
    pub tag: Tag,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(_saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated { tag: Tag::default() })
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
        let relu_1 = fx_nn::ops::relu(&relu)?;  drop(relu);
        let relu_2 = fx_nn::ops::relu(&relu_1)?;  drop(relu_1);
        let relu_3 = fx_nn::ops::relu(&relu_2)?;  drop(relu_2);
        let relu_4 = fx_nn::ops::relu(&relu_3)?;  drop(relu_3);
        let relu_5 = fx_nn::ops::relu(&relu_4)?;  drop(relu_4);
        let relu_6 = fx_nn::ops::relu(&relu_5)?;  drop(relu_5);
        let relu_7 = fx_nn::ops::relu(&relu_6)?;  drop(relu_6);
        let relu_8 = fx_nn::ops::relu(&relu_7)?;  drop(relu_7);
        let relu_9 = fx_nn::ops::relu(&relu_8)?;  drop(relu_8);
        let relu_10 = fx_nn::ops::relu(&relu_9)?;  drop(relu_9);
        let relu_11 = fx_nn::ops::relu(&relu_10)?;  drop(relu_10);
        Ok(relu_11)
    }
}
