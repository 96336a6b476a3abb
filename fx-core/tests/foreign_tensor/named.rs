//! `Generated`, generated from a traced graph of 10 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_core::prelude::*;
use foreign_tensor::Array;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `scale`.
    pub scale: Array,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            scale: FromValue::from_value(saved.parameter("scale")?)?,
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
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let gt = (x > 0.0)?;
        let scale = &self.scale;
        let mul = (x * scale)?;
        let mul_1 = (&gt * &mul)?;  drop(gt); drop(mul);
        let pow = mul_1.raised(2.0)?;  drop(mul_1);
        let getitem = pow.cut(0, 1)?;  drop(pow);
        let total = foreign_tensor::total(x)?;
        let add = (&getitem + total)?;  drop(getitem);
        Ok(add)
    }
}
