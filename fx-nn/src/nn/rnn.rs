//! `RNN`: a plain recurrent network over sequences.

use fx_core::{Error, Module, Result, trace};
use indexmap::IndexMap;

use super::options::options;
use super::recurrent::{Recurrent, columns, is_share, recurrent};
use crate::ops;
use crate::tensor::Tensor;

/// A plain recurrent network: for each layer and direction, at each step, h = tanh(W_ih x + b_ih + W_hh h + b_hh), or
/// max(.., 0) with the nonlinearity `"relu"`.
///
/// It is over `x` `[L, N, input_size]`, `[N, L, input_size]` with `batch_first`, or `[L, input_size]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::RNN::new(3, 5)?;
/// let (y, h) = layer.forward(&Tensor::rand((7, 4, 3))?, None)?;
/// assert_eq!((y.dims()?, h.dims()?), (&[7, 4, 5][..], &[1, 4, 5][..]));
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct RNN {
    /// By PyTorch's names: `weight_ih_l0` `[hidden_size, in]`, `weight_hh_l0` `[hidden_size, hidden_size]`,
    /// `bias_ih_l0`, `bias_hh_l0` `[hidden_size]`, `.._l0_reverse`, `.._l1` and so on.
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
    /// `"tanh"` or `"relu"`.
    pub nonlinearity: String,
    /// Whether anything is dropped.
    pub training: bool,
}

recurrent!(RNN, "rnn", 1, nonlinearity: "tanh".to_string());
options!(RNN { nonlinearity: impl Into<String> });

#[trace(leaf, impure = draws, path = "fx_nn::nn::RNN")]
impl RNN {
    /// The last layer's hidden states, and the last ones of all layers; `hx` are the first ones,
    /// `[layers · directions, N, hidden_size]`, zeros where none are given.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit, or the nonlinearity is unknown.
    pub fn forward(&self, x: &Tensor, hx: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let weights: Vec<Tensor> = self.weights.values().cloned().collect();
        let run = match self.nonlinearity.as_str() {
            "tanh" => ops::rnn_tanh,
            "relu" => ops::rnn_relu,
            other => {
                return Err(Error::msg(format_args!(
                    "rnn: nonlinearity is \"tanh\" or \"relu\", not {other:?}"
                )));
            }
        };
        run(
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
