//! `RNN`: a plain recurrent network over sequences.

use candle_core::DType;
use fx_core::{Error, Module, Result, trace};
use indexmap::IndexMap;

use super::parameter;
use crate::error::Fx;
use crate::tensor::Tensor;
use crate::{ops, room};

/// A plain recurrent network: for each layer and direction, at each step, h = tanh(W_ih x + b_ih + W_hh h + b_hh), or
/// max(.., 0) with the nonlinearity `"relu"`.
///
/// It is over `x` `[L, N, input_size]`, `[N, L, input_size]` with `batch_first`, or `[L, input_size]`.
///
/// ```
/// use fx_nn::prelude::*;
/// let layer = nn::RNN::new(3, 5, nn::RNNOptions::default())?;
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

/// Options of [`RNN`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct RNNOptions {
    /// Layers: 1.
    pub num_layers: usize,
    /// Whether there are biases: yes.
    pub bias: bool,
    /// Whether the batch is the first dim: no.
    pub batch_first: bool,
    /// The share of zeros between layers in training: 0.
    pub dropout: f64,
    /// Whether each layer also runs from the end: no.
    pub bidirectional: bool,
}

impl Default for RNNOptions {
    fn default() -> Self {
        RNNOptions {
            num_layers: 1,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            bidirectional: false,
        }
    }
}

impl RNN {
    /// A layer in training mode, initialised as PyTorch's.
    ///
    /// # Errors
    /// When there are no layers, or `dropout` is not in [0, 1].
    pub fn new(input_size: usize, hidden_size: usize, options: RNNOptions) -> Result<Self> {
        let RNNOptions {
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
        } = options;
        if num_layers == 0 || hidden_size == 0 || !(0.0..=1.0).contains(&dropout) {
            return Err(Error::msg(format_args!(
                "rnn: layers and hidden_size are above 0 and dropout in [0, 1], not {num_layers}, {hidden_size} and {dropout}"
            )));
        }
        let each = hidden_size.saturating_add(input_size);
        room::of("rnn", &[num_layers, each, hidden_size], DType::F32).fx()?;
        let bound = parameter::fan_in_bound(hidden_size);
        // A size that does not fit has no room either, and the draw of the weights says so.
        let gates = hidden_size;
        let directions: &[&str] = if bidirectional {
            &["", "_reverse"]
        } else {
            &[""]
        };
        let mut weights = IndexMap::new();
        for layer in 0..num_layers {
            let inputs = match layer {
                0 => input_size,
                _ => hidden_size.saturating_mul(directions.len()),
            };
            for direction in directions {
                let mut add = |name: &str, shape: &[usize]| -> Result<()> {
                    let name = format!("{name}_l{layer}{direction}");
                    weights.insert(name, parameter::uniform(shape, bound)?);
                    Ok(())
                };
                add("weight_ih", &[gates, inputs])?;
                add("weight_hh", &[gates, hidden_size])?;
                if bias {
                    add("bias_ih", &[gates])?;
                    add("bias_hh", &[gates])?;
                }
            }
        }
        Ok(RNN {
            weights,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            nonlinearity: "tanh".to_string(),
            training: true,
        })
    }

    fn draws(&self) -> bool {
        self.training && self.dropout > 0.0 && self.num_layers > 1
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::RNN")]
impl RNN {
    /// The last layer's hidden states, and the last ones of all layers; `hx` are the first ones,
    /// `[layers · directions, N, hidden_size]`, zeros where none are given.
    ///
    /// # Errors
    /// When a shape does not fit, or the nonlinearity is another.
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
