//! `LSTM`: long short-term memory over sequences.

use fx_core::{Module, Result, trace};
use indexmap::IndexMap;

use super::options::options;
use super::recurrent::{Recurrent, columns, is_share, recurrent};
use crate::ops;
use crate::tensor::Tensor;

/// Long short-term memory: for each layer and direction, at each step,
///
/// ```text
/// i, f, o = sigmoid(W_i* x + b_i* + W_h* h + b_h*)    g = tanh(W_ig x + b_ig + W_hg h + b_hg)
/// c = f · c + i · g                                   h = o · tanh(c)
/// ```
///
/// over `x` `[L, N, input_size]`, `[N, L, input_size]` with `batch_first`, or `[L, input_size]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::LSTM::new(3, 5)?.num_layers(2)?.batch_first(true);
/// let (y, (h, c)) = layer.forward(&Tensor::rand((4, 7, 3))?, None)?;
/// assert_eq!((y.dims()?, h.dims()?, c.dims()?), (&[4, 7, 5][..], &[2, 4, 5][..], &[2, 4, 5][..]));
///
/// // One number in and out: weights of one, and biases that tell the gates apart.
/// let mut layer = nn::LSTM::new(1, 1)?;
/// for (name, weight) in &mut layer.weights {
///     *weight = match name.as_str() {
///         "bias_ih_l0" => Tensor::from_vec(vec![0.0f32, 1.0, 2.0, -1.0], 4)?,
///         "bias_hh_l0" => Tensor::zeros(4)?,
///         _ => Tensor::ones((4, 1))?,
///     };
/// }
/// let x = Tensor::from_vec(vec![1.0f32, -1.0], (2, 1, 1))?;
/// let (y, (_, c)) = layer.forward(&x, None)?;
/// let expected = Tensor::from_vec(vec![0.310749f32, 0.095061], (2, 1, 1))?;
/// assert!(fx_nn::allclose(&y, &expected, 0.0, 1e-5)?.close);
/// assert!((c.item()? - 0.708688).abs() < 1e-5);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct LSTM {
    /// By PyTorch's names: `weight_ih_l0` `[4 · hidden_size, in]`, `weight_hh_l0` `[4 · hidden_size, hidden_size]`,
    /// `bias_ih_l0`, `bias_hh_l0` `[4 · hidden_size]`, `.._l0_reverse`, `.._l1` and so on.
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

recurrent!(LSTM, "lstm", 4);

#[trace(leaf, impure = draws, path = "fx_nn::nn::LSTM")]
impl LSTM {
    /// The last layer's hidden states, and the last hidden and cell states of all layers; `hx` are the first ones,
    /// `[layers · directions, N, hidden_size]`, zeros where none are given.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(
        &self,
        x: &Tensor,
        hx: Option<(Tensor, Tensor)>,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let (h_0, c_0) = hx.unzip();
        let weights: Vec<Tensor> = self.weights.values().cloned().collect();
        let (y, h, c) = ops::lstm(
            x,
            h_0.as_ref(),
            c_0.as_ref(),
            &weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )?;
        Ok((y, (h, c)))
    }
}
