//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;

/// What stands for a model.
#[derive(Module)]
pub struct Code(#[module(flatten)] pub fx_nn::models::siamese::Siamese);

impl std::ops::Deref for Code {
    type Target = fx_nn::models::siamese::Siamese;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[trace]
impl Code {
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
