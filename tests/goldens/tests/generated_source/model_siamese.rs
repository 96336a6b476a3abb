//! `Generated`, generated from a traced graph of 19 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `tower`.
    pub tower: Tower,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            tower: Tower::take(saved, "tower")?,
        })
    }
}

/// What is at `tower`.
#[derive(Module)]
pub struct Tower {
    /// `conv`.
    pub conv: fx_nn::nn::Conv2d,
    /// `pool`.
    pub pool: fx_nn::nn::AvgPool2d,
    /// `fc`.
    pub fc: fx_nn::nn::Linear,
}

impl Tower {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Tower {
            conv: saved.take_submodule(&format!("{path}.conv"))?,
            pool: saved.take_submodule(&format!("{path}.pool"))?,
            fc: saved.take_submodule(&format!("{path}.fc"))?,
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
    pub fn forward(&self, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
        // tower: Tower
        let tower_conv = self.tower.conv.forward(a)?;
        let leaky_relu = fx_nn::ops::leaky_relu(&tower_conv, 0.1)?;  drop(tower_conv);
        let tower_pool = self.tower.pool.forward(&leaky_relu)?;  drop(leaky_relu);
        let flatten = tower_pool.flatten(1, -1)?;  drop(tower_pool);
        let tower_fc = self.tower.fc.forward(&flatten)?;  drop(flatten);
        // tower: Tower
        let tower_conv_1 = self.tower.conv.forward(b)?;
        let leaky_relu_1 = fx_nn::ops::leaky_relu(&tower_conv_1, 0.1)?;  drop(tower_conv_1);
        let tower_pool_1 = self.tower.pool.forward(&leaky_relu_1)?;  drop(leaky_relu_1);
        let flatten_1 = tower_pool_1.flatten(1, -1)?;  drop(tower_pool_1);
        let tower_fc_1 = self.tower.fc.forward(&flatten_1)?;  drop(flatten_1);
        // Siamese
        let sub = (&tower_fc - &tower_fc_1)?;
        let pow = sub.pow(2)?;  drop(sub);
        let sum = pow.sum(1)?;  drop(pow);
        let add = (&sum + 1e-6)?;  drop(sum);
        let sqrt = fx_nn::ops::sqrt(&add)?;  drop(add);
        let cosine_similarity = fx_nn::ops::cosine_similarity(&tower_fc, &tower_fc_1, 1, 1e-8)?;  drop(tower_fc); drop(tower_fc_1);
        Ok((sqrt, cosine_similarity))
    }
}
