//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;

/// What stands for a model.
#[derive(Module)]
pub struct Code(#[module(flatten)] pub fx_nn::models::mlp::Mlp);

impl std::ops::Deref for Code {
    type Target = fx_nn::models::mlp::Mlp;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[trace]
impl Code {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let fc1 = self.fc1.forward(x)?;
        let relu = fx_nn::ops::relu(&fc1)?;  core::mem::drop(fc1);
        let fc2 = self.fc2.forward(&relu)?;  core::mem::drop(relu);
        let tanh = fx_nn::ops::tanh(&fc2)?;  core::mem::drop(fc2);
        let drop = self.drop.forward(&tanh)?;  core::mem::drop(tanh);
        let fc3 = self.fc3.forward(&drop)?;  core::mem::drop(drop);
        let log_softmax = fx_nn::ops::log_softmax(&fc3, -1)?;  core::mem::drop(fc3);
        Ok(log_softmax)
    }
}
