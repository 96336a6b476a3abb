//! `Generated`, generated from a traced graph of 21 nodes; to be edited as any source.
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
        let chunk = x.chunk(2, 0)?;
        let getitem = chunk.get(0)?;
        let getitem_1 = chunk.get(1)?;  drop(chunk);
        let split = fx_nn::ops::split(&getitem, 1, 0)?;
        let getitem_2 = split.get(0)?;
        let getitem_3 = split.get(1)?;
        let getitem_4 = split.get(2)?;  drop(split);
        let max = fx_nn::ops::max(&getitem_1, 0, false)?;  drop(getitem_1);
        let getitem_5 = max.0.clone();
        let getitem_6 = max.1.clone();  drop(max);
        let sum = getitem.sum(..)?;  drop(getitem);
        let mul = (&getitem_2 * &getitem_3)?;  drop(getitem_2); drop(getitem_3);
        let mul_1 = (&mul * &getitem_4)?;  drop(mul); drop(getitem_4);
        let sum_1 = mul_1.sum(..)?;  drop(mul_1);
        let add = (&sum + &sum_1)?;  drop(sum); drop(sum_1);
        let sum_2 = getitem_5.sum(..)?;  drop(getitem_5);
        let add_1 = (&add + &sum_2)?;  drop(add); drop(sum_2);
        let sum_3 = getitem_6.sum(..)?;  drop(getitem_6);
        let add_2 = (&add_1 + &sum_3)?;  drop(add_1); drop(sum_3);
        Ok(add_2)
    }
}
