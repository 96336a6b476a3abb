//! A model that returns a tuple of tensors, of an input that may be absent, and of nothing.

use fx_core::{Module, Result, trace};

use crate::nn;
use crate::tensor::Tensor;

/// A layer, its mean and deviation, and the second input.
#[derive(Module, Clone, Debug)]
pub struct TupleOut {
    /// The layer.
    pub body: nn::Linear,
}

impl TupleOut {
    /// A model of a width.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(width: usize) -> Result<Self> {
        Ok(TupleOut {
            body: nn::Linear::new(width, width)?,
        })
    }
}

/// States, their mean and deviation, the second input, and an absent tensor.
pub type Outputs = (Tensor, (Tensor, Tensor), Option<Tensor>, Option<Tensor>);

#[trace]
impl TupleOut {
    /// All of these.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor, y: Option<&Tensor>) -> Result<Outputs> {
        let h = self.body.forward(x)?;
        let spread = (h.mean(..)?, h.std(.., false)?);
        Ok((h, spread, y.cloned(), None))
    }
}
