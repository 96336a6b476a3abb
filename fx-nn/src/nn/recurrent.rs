//! The common parts of `RNN`, `GRU` and `LSTM`: their weights under PyTorch's names, and their
//! options.

use candle_core::DType;
use fx_core::{Error, Result};
use indexmap::IndexMap;

use super::parameter;
use crate::error::Fx;
use crate::room;
use crate::tensor::Tensor;

/// The shapes of a recurrent layer's weights.
#[derive(Clone, Copy)]
pub(super) struct Recurrent {
    /// The name in its errors.
    pub op: &'static str,
    /// The number of weight rows per hidden number.
    pub gates: usize,
    pub input_size: usize,
    pub hidden_size: usize,
    pub num_layers: usize,
    pub bias: bool,
    pub bidirectional: bool,
}

impl Recurrent {
    /// New weights by name, initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if there are no layers or hidden numbers, or the weights do not fit into
    /// memory.
    pub fn weights(self) -> Result<IndexMap<String, Tensor>> {
        let Recurrent {
            op,
            input_size,
            hidden_size,
            num_layers,
            ..
        } = self;
        if num_layers == 0 || hidden_size == 0 {
            return Err(Error::msg(format_args!(
                "{op}: num_layers and hidden_size are above 0, not {num_layers} and {hidden_size}"
            )));
        }
        let each = hidden_size
            .saturating_add(input_size)
            .saturating_mul(self.gates);
        room::of(op, &[num_layers, each, hidden_size], DType::F32).fx()?;
        let bound = parameter::fan_in_bound(hidden_size);
        let rows = hidden_size.saturating_mul(self.gates);
        let directions: &[&str] = match self.bidirectional {
            true => &["", "_reverse"],
            false => &[""],
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
                add("weight_ih", &[rows, inputs])?;
                add("weight_hh", &[rows, hidden_size])?;
                if self.bias {
                    add("bias_ih", &[rows])?;
                    add("bias_hh", &[rows])?;
                }
            }
        }
        Ok(weights)
    }
}

/// Whether a share of elements is one.
pub(super) fn is_share(op: &str, p: f64) -> Result<f64> {
    match (0.0..=1.0).contains(&p) {
        true => Ok(p),
        false => Err(Error::msg(format_args!(
            "{op}: dropout is a probability in [0, 1], not {p}"
        ))),
    }
}

/// How many columns a weight has.
pub(super) fn columns(op: &str, weights: &IndexMap<String, Tensor>, name: &str) -> Result<usize> {
    let dims = weights.get(name).map(Tensor::dims).transpose()?;
    let columns = dims.and_then(|dims| dims.get(1));
    columns.copied().ok_or_else(|| {
        Error::msg(format_args!(
            "{op}: the layer has no matrix `{name}`: set its options before its weights"
        ))
    })
}

/// Writes `new` and the options of a recurrent layer with fields of these names.
macro_rules! recurrent {
    ($layer:ident, $op:literal, $gates:literal $(, $field:ident: $value:expr)?) => {
        impl $layer {
            /// One layer over `input_size` numbers, in training mode, initialised as PyTorch's.
            ///
            /// # Errors
            /// Returns an error if `hidden_size` is 0, or the parameters do not fit into memory.
            pub fn new(input_size: usize, hidden_size: usize) -> Result<Self> {
                let made = Recurrent {
                    op: $op,
                    gates: $gates,
                    input_size,
                    hidden_size,
                    num_layers: 1,
                    bias: true,
                    bidirectional: false,
                };
                Ok($layer {
                    weights: made.weights()?,
                    num_layers: 1,
                    bias: true,
                    batch_first: false,
                    dropout: 0.0,
                    bidirectional: false,
                    $($field: $value,)?
                    training: true,
                })
            }

            /// Sets the option `num_layers`, with new weights.
            ///
            /// # Errors
            /// Returns an error if there are no layers, or they do not fit into memory.
            pub fn num_layers(self, num_layers: usize) -> Result<Self> {
                $layer { num_layers, ..self }.with_new_weights()
            }

            /// Sets the option `bidirectional`, with new weights.
            ///
            /// # Errors
            /// Returns an error if they do not fit into memory.
            pub fn bidirectional(self, bidirectional: bool) -> Result<Self> {
                $layer { bidirectional, ..self }.with_new_weights()
            }

            /// Sets the option `dropout`.
            ///
            /// # Errors
            /// Returns an error if it is not in [0, 1].
            pub fn dropout(self, dropout: f64) -> Result<Self> {
                Ok($layer { dropout: is_share($op, dropout)?, ..self })
            }

            /// Whether the layer keeps its biases; what was taken off does not come back.
            #[must_use]
            pub fn bias(mut self, bias: bool) -> Self {
                self.bias &= bias;
                let keeps = self.bias;
                self.weights.retain(|name, _| keeps || !name.starts_with("bias"));
                self
            }

            fn with_new_weights(mut self) -> Result<Self> {
                let made = Recurrent {
                    op: $op,
                    gates: $gates,
                    input_size: columns($op, &self.weights, "weight_ih_l0")?,
                    hidden_size: columns($op, &self.weights, "weight_hh_l0")?,
                    num_layers: self.num_layers,
                    bias: self.bias,
                    bidirectional: self.bidirectional,
                };
                self.weights = made.weights()?;
                Ok(self)
            }

            fn draws(&self) -> bool {
                self.training && self.dropout > 0.0 && self.num_layers > 1
            }
        }

        options!($layer { batch_first: bool });
    };
}

pub(super) use recurrent;
