//! `Generated`, generated from a traced graph of 12 nodes; to be edited as any source.
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
    pub fn forward(&self, x: &Tensor, w1: &Tensor, w2: &Tensor) -> Result<Tensor> {
        let cat = fx_nn::ops::cat(&[w1.clone(), w2.clone()], 0)?;
        let sum = cat.sum(..)?;  drop(cat);
        let cat_1 = fx_nn::ops::cat(&[w1.clone(), w2.clone()], 0)?;
        let sum_1 = cat_1.sum(..)?;  drop(cat_1);
        let amax = fx_nn::ops::amax(&sum, None, false)?;  drop(sum);
        let add = (x + &amax)?;  drop(amax);
        let amax_1 = fx_nn::ops::amax(&sum_1, None, false)?;  drop(sum_1);
        let add_1 = (&add + &amax_1)?;  drop(add); drop(amax_1);
        Ok(add_1)
    }
}
