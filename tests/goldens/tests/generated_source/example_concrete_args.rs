//! `Generated`, generated from a traced graph of 11 nodes; to be edited as any source.
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

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Batch {
    /// One of its parts.
    pub tokens: Tensor,
    /// One of its parts.
    pub masks: Vec<Tensor>,
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
    pub fn forward(&self, batch: Batch, average: bool, bias: Option<&Tensor>) -> Result<Tensor> {
        let batch_1 = &batch.tokens;
        let batch_2 = &batch.masks[0];
        let batch_3 = &batch.masks[1];
        if average != true { return Err(Error::msg("`average` was specialised")); }
        if bias.is_some() { return Err(Error::msg("`bias` was specialised")); }
        let mul = (batch_1 * batch_2)?;
        let mul_1 = (&mul * batch_3)?;  drop(mul);
        let mean = mul_1.mean(-1)?;  drop(mul_1);
        Ok(mean)
    }
}
