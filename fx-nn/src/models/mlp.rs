//! A small multi-layer perceptron for classification.

use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// Three linear layers with dropout before the last; returns log-probabilities.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// The first layer.
    pub fc1: nn::Linear,
    /// The hidden layer.
    pub fc2: nn::Linear,
    /// The last layer.
    pub fc3: nn::Linear,
    /// Before the last layer.
    pub drop: nn::Dropout,
}

impl Mlp {
    /// A model in training mode, with dropout 0.1.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(d_in: usize, d_hidden: usize, d_out: usize) -> Result<Self> {
        Ok(Mlp {
            fc1: nn::Linear::new(d_in, d_hidden)?,
            fc2: nn::Linear::new(d_hidden, d_hidden)?,
            fc3: nn::Linear::new(d_hidden, d_out)?,
            drop: nn::Dropout::new(0.1)?,
        })
    }
}

#[trace]
impl Mlp {
    /// Log-probabilities `[N, d_out]` of `x` `[N, d_in]`.
    ///
    /// # Errors
    /// Returns an error if the shape does not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(&self.fc1.forward(x)?)?;
        let x = ops::tanh(&self.fc2.forward(&x)?)?;
        let x = self.drop.forward(&x)?;
        ops::log_softmax(&self.fc3.forward(&x)?, -1)
    }
}
