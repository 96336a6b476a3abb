//! `Rnn`, generated from a traced graph of 9 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Rnn::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Rnn {
    /// `scan_0`.
    pub scan_0: fx_nn::control::Scan,
}

impl Rnn {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Rnn {
            scan_0: saved.take_submodule("scan_0")?,
        })
    }
}

impl Rnn {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Rnn {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, xs: &Tensor, h: &Tensor) -> Result<Tensor> {
        let scan = self.scan_0.forward::<(Tensor, List<Tensor>)>((h, xs))?;
        let getitem = scan.0.clone();
        let getitem_1 = scan.1.clone();  drop(scan);
        let stacked = fx_nn::control::stacked(getitem_1.clone())?;  drop(getitem_1);
        let sum = getitem.sum(..)?;  drop(getitem);
        let add = (&stacked + &sum)?;  drop(stacked); drop(sum);
        Ok(add)
    }
}
