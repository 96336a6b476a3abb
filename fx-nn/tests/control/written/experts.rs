//! `Experts`, generated from a traced graph of 12 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Experts::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Experts {
    /// `router`.
    pub router: fx_nn::nn::Linear,
    /// `experts`.
    pub experts: Experts2,
}

impl Experts {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Experts {
            router: saved.take_submodule("router")?,
            experts: Experts2::take(saved, "experts")?,
        })
    }
}

/// What is at `experts`.
#[derive(Module)]
pub struct Experts2(pub fx_nn::nn::Linear, pub fx_nn::nn::Linear, pub fx_nn::nn::Linear);

impl Experts2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Experts2(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
        ))
    }
}

impl Experts {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace(control_flow)]
impl Experts {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mean = x.mean(0)?;
        let router = self.router.forward(&mean)?;  drop(mean);
        let argmax = router.argmax(0, false)?;  drop(router);
        let eq = (&argmax == 0)?;
        let cond = if eq.clone() {
            let experts_0 = self.experts.0.forward(x)?;
            experts_0
        } else {
            x.clone()
        };  drop(eq);
        let eq_1 = (&argmax == 1)?;
        let cond_1 = if eq_1.clone() {
            let experts_1 = self.experts.1.forward(x)?;
            experts_1
        } else {
            let cond = &cond;
            cond.clone()
        };  drop(eq_1); drop(cond);
        let eq_2 = (&argmax == 2)?;  drop(argmax);
        let cond_2 = if eq_2.clone() {
            let experts_2 = self.experts.2.forward(x)?;
            experts_2
        } else {
            let cond_1 = &cond_1;
            cond_1.clone()
        };  drop(eq_2); drop(cond_1);
        let relu = cond_2.relu()?;  drop(cond_2);
        Ok(relu)
    }
}
