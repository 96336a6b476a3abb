//! One layer under two names, called three times, and a parameter that two layers share.

use std::sync::Arc;

use fx_core::{Module, Result, trace};

use crate::nn;
use crate::tensor::Tensor;

/// `alias` is `shared`, and `other` has its weight.
#[derive(Module, Clone, Debug)]
pub struct SharedSub {
    /// The layer.
    pub shared: Arc<nn::Linear>,
    /// The same layer.
    pub alias: Arc<nn::Linear>,
    /// A layer with the same weight and a bias of its own.
    pub other: nn::Linear,
}

impl SharedSub {
    /// A model of a width.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(width: usize) -> Result<Self> {
        let shared = Arc::new(nn::Linear::new(width, width)?);
        Ok(SharedSub {
            other: nn::Linear {
                weight: shared.weight.clone(),
                ..nn::Linear::new(width, width)?
            },
            alias: shared.clone(),
            shared,
        })
    }
}

#[trace]
impl SharedSub {
    /// Applies the layers.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.shared.forward(x)?.relu()?;
        let x = self.alias.forward(&x)?.relu()?;
        let x = self.shared.forward(&x)?;
        self.other.forward(&x)? + self.shared.weight.sum(..)?
    }
}
