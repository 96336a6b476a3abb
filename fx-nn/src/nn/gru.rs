//! `GRU`: gated recurrent units over sequences.

use candle_core::DType;
use fx_core::{Error, Module, Result, trace};
use indexmap::IndexMap;

use super::parameter;
use crate::error::Fx;
use crate::tensor::Tensor;
use crate::{ops, room};

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
/// let options = nn::GRUOptions { num_layers: 2, batch_first: true, ..Default::default() };
/// let layer = nn::GRU::new(3, 5, options)?;
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

/// Options of [`GRU`], with PyTorch's defaults.
#[derive(Clone, Copy, Debug)]
pub struct GRUOptions {
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

impl Default for GRUOptions {
    fn default() -> Self {
        GRUOptions {
            num_layers: 1,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            bidirectional: false,
        }
    }
}

impl GRU {
    /// A layer in training mode, initialised as PyTorch's.
    ///
    /// # Errors
    /// When there are no layers, or `dropout` is not in [0, 1].
    pub fn new(input_size: usize, hidden_size: usize, options: GRUOptions) -> Result<Self> {
        let GRUOptions {
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
        } = options;
        if num_layers == 0 || hidden_size == 0 || !(0.0..=1.0).contains(&dropout) {
            return Err(Error::msg(format_args!(
                "gru: layers and hidden_size are above 0 and dropout in [0, 1], not {num_layers}, {hidden_size} and {dropout}"
            )));
        }
        let each = hidden_size.saturating_add(input_size).saturating_mul(3);
        room::of("gru", &[num_layers, each, hidden_size], DType::F32).fx()?;
        let bound = parameter::fan_in_bound(hidden_size);
        // A size that does not fit has no room either, and the draw of the weights says so.
        let gates = hidden_size.saturating_mul(3);
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
        Ok(GRU {
            weights,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            training: true,
        })
    }

    fn draws(&self) -> bool {
        self.training && self.dropout > 0.0 && self.num_layers > 1
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::GRU")]
impl GRU {
    /// The last layer's hidden states, and the last ones of all layers; `hx` are the first ones,
    /// `[layers · directions, N, hidden_size]`, zeros where none are given.
    ///
    /// # Errors
    /// When a shape does not fit.
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
