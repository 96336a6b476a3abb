//! A model that returns a structure by name.

use fx_core::value::Int;
use fx_core::{Module, Result, Tree, trace};

use crate::tensor::Tensor;
use crate::{nn, ops};

/// The result of [`DictOut`]: in a graph a dict of a tensor, a list and a number.
#[derive(Tree, Clone, Debug)]
pub struct Heads {
    /// Of the first head.
    pub a: Tensor,
    /// Of the second head, and the input of both.
    pub b: [Tensor; 2],
    /// How many tensors there are.
    pub n: Int,
}

/// Two heads over one body.
#[derive(Module, Clone, Debug)]
pub struct DictOut {
    /// Before both heads.
    pub body: nn::Linear,
    /// To 3 numbers.
    pub head_a: nn::Linear,
    /// To 2 numbers.
    pub head_b: nn::Linear,
}

impl DictOut {
    /// A model of a width.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(width: usize) -> Result<Self> {
        Ok(DictOut {
            body: nn::Linear::new(width, width)?,
            head_a: nn::Linear::new(width, 3)?,
            head_b: nn::Linear::new(width, 2)?,
        })
    }
}

#[trace]
impl DictOut {
    /// The results of both heads.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Heads> {
        let h = ops::relu(&self.body.forward(x)?)?;
        Ok(Heads {
            a: self.head_a.forward(&h)?,
            b: [self.head_b.forward(&h)?, h],
            n: 3.into(),
        })
    }
}
