//! `Outer`, generated from a traced graph of 8 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Outer::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Outer {
    /// `parts`.
    pub parts: Parts,
}

impl Outer {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Outer {
            parts: Parts::take(saved, "parts")?,
        })
    }
}

/// What is at `parts`.
#[derive(Module)]
pub struct Parts {
    /// `act`.
    pub act: fx_nn::GraphModule,
    /// `both`.
    pub both: fx_nn::GraphModule,
}

impl Parts {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Parts {
            act: saved.take_submodule(&format!("{path}.act"))?,
            both: saved.take_submodule(&format!("{path}.both"))?,
        })
    }
}

impl Outer {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Outer {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let parts_act = self.parts.act.forward::<Tensor>(x)?;
        let parts_both = self.parts.both.forward::<(Tensor, Tensor)>((&parts_act, 2.0))?;
        let parts_both_1 = self.parts.both.forward::<(Tensor, Tensor)>(args![&parts_act, by = 3.0])?;  drop(parts_act);
        let getitem = parts_both.0.clone();  drop(parts_both);
        let getitem_1 = parts_both_1.1.clone();  drop(parts_both_1);
        let add = (&getitem + &getitem_1)?;  drop(getitem); drop(getitem_1);
        Ok(add)
    }
}
