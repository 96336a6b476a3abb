//! `Experts`: layers of which each word uses a few, so that the others are not computed.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::super::activation::Activation;
use super::config::{Config, ExpertsConfig};
use crate::tensor::Tensor;
use crate::{nn, ops};

/// A mixture of experts: the router's choice of them, and their results by their shares.
#[derive(Module, Clone, Debug)]
pub struct SparseMoe {
    /// The router: a score for each expert.
    pub gate: nn::Linear,
    /// The experts.
    pub experts: Experts,
    per_token: usize,
    normalizes: bool,
    rounds: bool,
}

impl SparseMoe {
    pub(super) fn new(config: &Config, experts: &ExpertsConfig) -> Result<Self> {
        let (width, inside) = (config.hidden_size, experts.moe_intermediate_size);
        Ok(SparseMoe {
            gate: nn::Linear::new(width, experts.num_experts)?.bias(false),
            experts: Experts::new(
                [experts.num_experts, experts.num_experts_per_tok],
                [width, inside],
                config.activation,
            )?,
            per_token: experts.num_experts_per_tok,
            normalizes: experts.norm_topk_prob,
            rounds: experts.rounds_shares,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::SparseMoe")]
impl SparseMoe {
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [n, t, width] = x.shape()?.unpack()?;
        let words = x.reshape((-1, width))?;
        let scores = self.gate.forward(&words)?.to_dtype(DType::F32)?;
        let shares = ops::softmax(&scores, -1)?;
        let (shares, chosen) = shares.topk(self.per_token, -1, true, true)?;
        let shares = match self.normalizes {
            true => (&shares / shares.sum_keepdim(-1)?)?,
            false => shares,
        };
        let shares = match self.rounds {
            true => shares.type_as(x)?,
            false => shares,
        };
        self.experts
            .forward(&words, &chosen, &shares)?
            .view((n, t, width))
    }
}

/// The weights of all experts of a layer, each a gated `mlp`.
///
/// Products are computed for the chosen experts alone, of all words that chose one at once: see
/// [`grouped_mm`](ops::grouped_mm).
#[derive(Module, Clone, Debug)]
pub struct Experts {
    /// The gates, `[experts, intermediate_size, hidden_size]`.
    pub gate_proj: Tensor,
    /// The gated values, `[experts, intermediate_size, hidden_size]`.
    pub up_proj: Tensor,
    /// Back to the width between layers, `[experts, hidden_size, intermediate_size]`.
    pub down_proj: Tensor,
    count: usize,
    per_token: usize,
    width: usize,
    activation: Activation,
}

impl Experts {
    /// As many as `count`, of which each word uses `per_token`, between widths `width` and `inside`.
    pub(in super::super) fn new(
        [count, per_token]: [usize; 2],
        [width, inside]: [usize; 2],
        activation: Activation,
    ) -> Result<Self> {
        let weights = |outputs: usize, inputs: usize| {
            let bound = (inputs.max(1) as f64).powf(-0.5);
            ((Tensor::rand((count, outputs, inputs))? * (2.0 * bound))? - bound)?.into_parameter()
        };
        Ok(Experts {
            gate_proj: weights(inside, width)?,
            up_proj: weights(inside, width)?,
            down_proj: weights(width, inside)?,
            count,
            per_token,
            width,
            activation,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Experts")]
impl Experts {
    /// The results for words `[T, hidden_size]`, each of the experts `chosen` `[T, k]` by its shares `[T, k]`.
    pub(in super::super) fn forward(
        &self,
        x: &Tensor,
        chosen: &Tensor,
        shares: &Tensor,
    ) -> Result<Tensor> {
        let per_token = self.per_token as i64;
        // A row for each word and each of its experts, in the order of the experts.
        let chosen = chosen.reshape(-1)?;
        let order = chosen.argsort(0, false)?;
        let sorted = chosen.index_select(0, &order)?;
        let experts = Tensor::arange(0, self.count)?.unsqueeze(0)?;
        let ends = ops::sum(&sorted.unsqueeze(1)?.le(&experts)?, 0, false)?.to_dtype(DType::I32)?;
        let rows = x.index_select(0, &ops::floor_divide(&order, per_token)?)?;
        let product = |rows: &Tensor, weights: &Tensor| {
            ops::grouped_mm(rows, &weights.transpose(1, 2)?, &ends)
        };
        let gate = self.activation.apply(&product(&rows, &self.gate_proj)?)?;
        let gated = (gate * product(&rows, &self.up_proj)?)?;
        let y = product(&gated, &self.down_proj)?;
        // Back in the order of the words.
        let y = y.index_select(0, &order.argsort(0, false)?)?;
        let y = y.view((-1, per_token, self.width))?;
        let y = (y * shares.unsqueeze(-1)?)?.type_as(x)?;
        ops::sum(&y, 1, false)
    }
}
