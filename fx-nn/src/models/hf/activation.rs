//! `Activation`: the activation function that a model's configuration names.

use fx_core::{Module, Result};

use super::config::Fields;
use crate::ops;
use crate::tensor::Tensor;

/// An activation function by its name in a `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Module)]
#[non_exhaustive]
pub enum Activation {
    /// `silu` or `swish`: x · sigmoid(x).
    SiLU,
    /// `gelu`: x times the normal distribution's share below x.
    GELU,
    /// `gelu_new`, `gelu_fast` or `gelu_pytorch_tanh`: `gelu`, approximated by a hyperbolic tangent.
    GELUTanh,
    /// `quick_gelu`: x · sigmoid(1.702 x).
    QuickGELU,
    /// `relu`: the larger of x and 0.
    ReLU,
    /// `tanh`: the hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// Reads a field that names an activation.
    pub(crate) fn of(fields: &mut Fields, name: &str, default: &'static str) -> Self {
        match fields.text_or(name, default).as_str() {
            "silu" | "swish" => Activation::SiLU,
            "gelu" => Activation::GELU,
            "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Activation::GELUTanh,
            "quick_gelu" => Activation::QuickGELU,
            "relu" => Activation::ReLU,
            "tanh" => Activation::Tanh,
            other => {
                fields.problem(format!(
                    "`{name}` is `{other}`: supported are silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, relu and tanh"
                ));
                Activation::ReLU
            }
        }
    }

    /// The function, element by element.
    pub(crate) fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::SiLU => ops::silu(x),
            Activation::GELU => ops::gelu(x, "none"),
            Activation::GELUTanh => ops::gelu(x, "tanh"),
            Activation::QuickGELU => x * ops::sigmoid(&(x * 1.702)?)?,
            Activation::ReLU => ops::relu(x),
            Activation::Tanh => ops::tanh(x),
        }
    }
}
