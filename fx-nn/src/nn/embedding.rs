//! `Embedding`: a vector for each index.

use candle_core::Var;
use fx_core::{Error, Module, Result, trace};

use super::parameter;
use crate::error::Fx;
use crate::ops;
use crate::tensor::Tensor;

/// The rows of `weight` that an `int64` tensor names: `[..]` to `[.., embedding_dim]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::Embedding::new(10, 4)?;
/// let y = layer.forward(&Tensor::from_vec(vec![3i64, 0, 9], (1, 3))?)?;
/// assert_eq!(y.dims()?, [1, 3, 4]);
/// assert_eq!(y.i((0, 2))?.to_vec()?, layer.weight.i(9)?.to_vec()?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct Embedding {
    /// `[num_embeddings, embedding_dim]`.
    pub weight: Tensor,
    /// The row that is not trained.
    pub padding_idx: Option<usize>,
}

impl Embedding {
    /// A layer of normal random rows.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> Result<Self> {
        Ok(Embedding {
            weight: parameter::normal(&[num_embeddings, embedding_dim])?,
            padding_idx: None,
        })
    }

    /// Sets the option [`padding_idx`](Embedding#structfield.padding_idx), and its row to zeros.
    ///
    /// # Errors
    /// Returns an error if there is no such row.
    pub fn padding_idx(self, padding_idx: usize) -> Result<Self> {
        let rows = self.weight.candle()?;
        let num_embeddings = rows.dims().first().copied().unwrap_or(0);
        if padding_idx >= num_embeddings {
            return Err(Error::msg(format_args!(
                "embedding: padding_idx {padding_idx} is not one of {num_embeddings} rows"
            )));
        }
        let zeros = rows.narrow(0, padding_idx, 1).and_then(|r| r.zeros_like());
        let padded = zeros
            .and_then(|zeros| rows.detach().slice_scatter(&zeros, 0, padding_idx))
            .fx()?;
        Var::from_tensor(rows)
            .and_then(|var| var.set(&padded))
            .fx()?;
        Ok(Embedding {
            padding_idx: Some(padding_idx),
            ..self
        })
    }
}

#[trace(leaf, path = "fx_nn::nn::Embedding")]
impl Embedding {
    /// Applies the layer to integers of any shape.
    ///
    /// # Errors
    /// Returns an error if an element is not the index of a row.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::embedding(x, &self.weight, self.padding_idx)
    }
}
