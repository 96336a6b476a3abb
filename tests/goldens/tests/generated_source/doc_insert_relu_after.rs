//! `Generated`, generated from a traced graph of 8 nodes; to be edited as any source.
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
    pub fn forward(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let add = (x + y)?;
        let relu = fx_nn::ops::relu(&add)?;  drop(add);
        let mul = (&relu * y)?;
        let add_1 = (&relu + &mul)?;  drop(relu); drop(mul);
        let relu_1 = fx_nn::ops::relu(&add_1)?;  drop(add_1);
        Ok(relu_1)
    }
}
