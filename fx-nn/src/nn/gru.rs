//! `GRU`: gated recurrent units over sequences.

use fx_core::{Module, Result, trace};
use indexmap::IndexMap;

use super::options::options;
use super::recurrent::{Recurrent, columns, is_share, recurrent};
use crate::ops;
use crate::tensor::Tensor;

/// Gated recurrent units: for each layer and direction, at each step,
///
/// ```text
/// r, z = sigmoid(W_i* x + b_i* + W_h* h + b_h*)    n = tanh(W_in x + b_in + r · (W_hn h + b_hn))
/// h = (1 - z) · n + z · h
/// ```
///
/// over `x` `[L, N, input_size]`, `[N, L, input_size]` with `batch_first`, or `[L, input_size]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::GRU::new(3, 5)?.num_layers(2)?.batch_first(true);
/// let (y, h) = layer.forward(&Tensor::rand((4, 7, 3))?, None)?;
/// assert_eq!((y.dims()?, h.dims()?), (&[4, 7, 5][..], &[2, 4, 5][..]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct GRU {
    /// By PyTorch's names: `weight_ih_l0` `[3 · hidden_size, in]`, `weight_hh_l0` `[3 · hidden_size, hidden_size]`,
    /// `bias_ih_l0`, `bias_hh_l0` `[3 · hidden_size]`, `.._l0_reverse`, `.._l1` and so on.
    #[module(flatten)]
    pub weights: IndexMap<String, Tensor>,
    /// Layers, each over the states of the one before.
    pub num_layers: usize,
    /// Whether there are biases.
    pub bias: bool,
    /// Whether the batch is the first dim.
    pub batch_first: bool,
    /// The share of zeros between layers in training.
    pub dropout: f64,
    /// Whether each layer also runs from the end.
    pub bidirectional: bool,
    /// Whether anything is dropped.
    pub training: bool,
}

recurrent!(GRU, "gru", 3);

#[trace(leaf, impure = draws, path = "fx_nn::nn::GRU")]
impl GRU {
    /// The last layer's hidden states, and the last ones of all layers; `hx` are the first ones,
    /// `[layers · directions, N, hidden_size]`, zeros where none are given.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(&self, x: &Tensor, hx: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let weights: Vec<Tensor> = self.weights.values().cloned().collect();
        ops::gru(
            x,
            hx,
            &weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
    }
}
