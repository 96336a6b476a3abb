//! `Identity`: x itself.

use fx_core::module::Tag;
use fx_core::{Module, Result, trace};

use crate::tensor::Tensor;

/// The input, unchanged.
#[derive(Module, Clone, Debug, Default)]
pub struct Identity {
    tag: Tag,
}

impl Identity {
    /// The layer.
    pub fn new() -> Self {
        Identity::default()
    }
}

#[trace(leaf, path = "fx_nn::nn::Identity")]
impl Identity {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns no errors of its own.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}
