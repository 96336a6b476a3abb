//! `Flatten`: several dims as one.

use fx_core::{Module, Result, trace};

use super::options::options;
use crate::ops;
use crate::tensor::Tensor;

/// Dims `start_dim` to `end_dim` as one.
#[derive(Module, Clone, Debug)]
pub struct Flatten {
    /// The first dim.
    pub start_dim: i64,
    /// The last one.
    pub end_dim: i64,
}

impl Flatten {
    /// All dims but the batch's.
    pub fn new() -> Self {
        Flatten {
            start_dim: 1,
            end_dim: -1,
        }
    }
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten::new()
    }
}

options!(Flatten {
    start_dim: i64,
    end_dim: i64
});

#[trace(leaf, path = "fx_nn::nn::Flatten")]
impl Flatten {
    /// Applies the layer.
    ///
    /// # Errors
    /// Returns an error if there are no such dims.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::flatten(x, self.start_dim, self.end_dim)
    }
}
