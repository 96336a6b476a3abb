//! Single steps of recurrent networks.

use fx_core::{Error, Module, Result, trace};

use super::options::{kept, options};
use super::parameter;
use crate::ops;
use crate::tensor::Tensor;

/// The parameters of a step.
struct Parts {
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Option<Tensor>,
    bias_hh: Option<Tensor>,
}

fn parts(input_size: usize, hidden_size: usize, gates: usize) -> Result<Parts> {
    let bound = parameter::fan_in_bound(hidden_size);
    let rows = hidden_size.saturating_mul(gates);
    Ok(Parts {
        weight_ih: parameter::uniform(&[rows, input_size], bound)?,
        weight_hh: parameter::uniform(&[rows, hidden_size], bound)?,
        bias_ih: Some(parameter::uniform(&[rows], bound)?),
        bias_hh: Some(parameter::uniform(&[rows], bound)?),
    })
}

/// One step of a gated recurrent unit.
#[derive(Module, Clone, Debug)]
pub struct GRUCell {
    /// `[3 · hidden_size, input_size]`.
    pub weight_ih: Tensor,
    /// `[3 · hidden_size, hidden_size]`.
    pub weight_hh: Tensor,
    /// `[3 · hidden_size]`.
    pub bias_ih: Option<Tensor>,
    /// `[3 · hidden_size]`.
    pub bias_hh: Option<Tensor>,
}

impl GRUCell {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<Self> {
        let Parts {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
        } = parts(input_size, hidden_size, 3)?;
        Ok(GRUCell {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
        })
    }
}

kept!(GRUCell {
    bias: [bias_ih, bias_hh]
});

#[trace(leaf, path = "fx_nn::nn::GRUCell")]
impl GRUCell {
    /// The next state of `x` `[N, input_size]` and the state `hx` `[N, hidden_size]`, zeros where none is given; both
    /// without N too.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(&self, x: &Tensor, hx: Option<&Tensor>) -> Result<Tensor> {
        ops::gru_cell(
            x,
            hx,
            &self.weight_ih,
            &self.weight_hh,
            self.bias_ih.as_ref(),
            self.bias_hh.as_ref(),
        )
    }
}

/// One step of a plain recurrent network.
#[derive(Module, Clone, Debug)]
pub struct RNNCell {
    /// `[hidden_size, input_size]`.
    pub weight_ih: Tensor,
    /// `[hidden_size, hidden_size]`.
    pub weight_hh: Tensor,
    /// `[hidden_size]`.
    pub bias_ih: Option<Tensor>,
    /// `[hidden_size]`.
    pub bias_hh: Option<Tensor>,
    /// `"tanh"` or `"relu"`.
    pub nonlinearity: String,
}

impl RNNCell {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<Self> {
        let Parts {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
        } = parts(input_size, hidden_size, 1)?;
        Ok(RNNCell {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
            nonlinearity: "tanh".to_string(),
        })
    }
}

kept!(RNNCell {
    bias: [bias_ih, bias_hh]
});

options!(RNNCell { nonlinearity: impl Into<String> });

#[trace(leaf, path = "fx_nn::nn::RNNCell")]
impl RNNCell {
    /// The next state of `x` `[N, input_size]` and the state `hx` `[N, hidden_size]`, zeros where none is given; both
    /// without N too.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit, or the nonlinearity is unknown.
    pub fn forward(&self, x: &Tensor, hx: Option<&Tensor>) -> Result<Tensor> {
        let run = match self.nonlinearity.as_str() {
            "tanh" => ops::rnn_tanh_cell,
            "relu" => ops::rnn_relu_cell,
            other => {
                return Err(Error::msg(format_args!(
                    "rnn_cell: nonlinearity is \"tanh\" or \"relu\", not {other:?}"
                )));
            }
        };
        run(
            x,
            hx,
            &self.weight_ih,
            &self.weight_hh,
            self.bias_ih.as_ref(),
            self.bias_hh.as_ref(),
        )
    }
}

/// One step of long short-term memory.
#[derive(Module, Clone, Debug)]
pub struct LSTMCell {
    /// `[4 · hidden_size, input_size]`.
    pub weight_ih: Tensor,
    /// `[4 · hidden_size, hidden_size]`.
    pub weight_hh: Tensor,
    /// `[4 · hidden_size]`.
    pub bias_ih: Option<Tensor>,
    /// `[4 · hidden_size]`.
    pub bias_hh: Option<Tensor>,
}

impl LSTMCell {
    /// A layer initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if it does not fit into memory.
    pub fn new(input_size: usize, hidden_size: usize) -> Result<Self> {
        let Parts {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
        } = parts(input_size, hidden_size, 4)?;
        Ok(LSTMCell {
            weight_ih,
            weight_hh,
            bias_ih,
            bias_hh,
        })
    }
}

kept!(LSTMCell {
    bias: [bias_ih, bias_hh]
});

#[trace(leaf, path = "fx_nn::nn::LSTMCell")]
impl LSTMCell {
    /// The next hidden and cell states of `x` `[N, input_size]` and the states `hx`, both `[N, hidden_size]`, zeros where
    /// none are given; all without N too.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(&self, x: &Tensor, hx: Option<(Tensor, Tensor)>) -> Result<(Tensor, Tensor)> {
        let (h, c) = hx.unzip();
        ops::lstm_cell(
            x,
            h.as_ref(),
            c.as_ref(),
            &self.weight_ih,
            &self.weight_hh,
            self.bias_ih.as_ref(),
            self.bias_hh.as_ref(),
        )
    }
}
