//! `Layer`: attention, and an `mlp` or experts.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::super::decoder::{Cache, Experts, Mlp};
use super::super::norm::Norm;
use super::attention::{Attention, Positions};
use super::config::{Config, Groups};
use crate::tensor::Tensor;
use crate::{nn, ops};

/// A gated `mlp` of a configuration.
fn mlp(config: &Config, inside: usize) -> Result<Mlp> {
    Mlp::new(
        [config.hidden_size, inside],
        true,
        config.mlp_bias,
        config.hidden_act,
    )
}

/// The choice of experts: those of the highest scores, of all experts or of those in the best groups.
#[derive(Module, Clone, Debug)]
pub struct Router {
    /// `[experts, hidden_size]`: a score for each expert.
    pub weight: Tensor,
    count: usize,
    per_token: usize,
    groups: Option<Groups>,
    factor: f64,
}

#[trace(path = "fx_nn::models::hf::deepseek::Router")]
impl Router {
    /// The shares of the experts that each of the words `[W, hidden_size]` chooses, and the experts, `[W, k]` each. Computed
    /// in single precision.
    fn forward(&self, words: &Tensor) -> Result<(Tensor, Tensor)> {
        let (words, weight) = (
            words.to_dtype(DType::F32)?,
            self.weight.to_dtype(DType::F32)?,
        );
        let mut shares = ops::softmax(&ops::linear(&words, &weight, None)?, -1)?;
        if let Some(Groups {
            n_group,
            topk_group,
        }) = self.groups
        {
            let inside = self.count / n_group;
            let best = shares.view((-1, n_group, inside))?.amax(-1)?;
            let (_, kept) = best.topk(topk_group, -1, true, true)?;
            let left_out = ops::scatter_value(&ops::ones_like(&best, None)?, 1, &kept, 0.0)?;
            let left_out = left_out.ne(0)?.unsqueeze(-1)?.expand((-1, -1, inside))?;
            shares = shares.masked_fill(&left_out.reshape((-1, self.count))?, 0.0)?;
        }
        let (shares, chosen) = shares.topk(self.per_token, -1, true, true)?;
        Ok(((shares * self.factor)?, chosen))
    }
}

/// Experts of which each word uses a few, and those that all words use.
#[derive(Module, Clone, Debug)]
pub struct Moe {
    /// The choice of experts.
    pub gate: Router,
    /// The experts to choose from.
    pub experts: Experts,
    /// Those that all words use, as one.
    pub shared_experts: Mlp,
}

impl Moe {
    fn new(config: &Config) -> Result<Self> {
        let (width, experts) = (config.hidden_size, &config.experts);
        let (count, inside) = (experts.n_routed_experts, experts.moe_intermediate_size);
        Ok(Moe {
            gate: Router {
                weight: nn::Linear::new(width, count)?.weight,
                count,
                per_token: experts.num_experts_per_tok,
                groups: experts.groups,
                factor: experts.routed_scaling_factor,
            },
            experts: Experts::new(
                [count, experts.num_experts_per_tok],
                [width, inside],
                config.hidden_act,
            )?,
            shared_experts: mlp(config, inside.saturating_mul(experts.n_shared_experts))?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::deepseek::Moe")]
impl Moe {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [n, t, width] = x.shape()?.unpack()?;
        let words = x.reshape((-1, width))?;
        let (shares, chosen) = self.gate.forward(&words)?;
        let y = self
            .experts
            .forward(&words, &chosen, &shares)?
            .view((n, t, width))?;
        y + self.shared_experts.forward(x)?
    }
}

/// What stands behind the attention of a layer.
#[derive(Module, Clone, Debug)]
#[non_exhaustive]
pub enum FeedForward {
    /// One for all words.
    Mlp(#[module(flatten)] Mlp),
    /// Experts.
    Moe(#[module(flatten)] Moe),
}

/// Attention, and an `mlp` or experts, each after a norm and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention.
    pub input_layernorm: Norm,
    /// The attention.
    pub self_attn: Attention,
    /// Before the `mlp`.
    pub post_attention_layernorm: Norm,
    /// The `mlp`.
    pub mlp: FeedForward,
}

impl Layer {
    pub(super) fn new(config: &Config, at: usize) -> Result<Self> {
        let norm = || Norm::new(config.hidden_size, config.rms_norm_eps);
        Ok(Layer {
            input_layernorm: norm()?,
            self_attn: Attention::new(config)?,
            post_attention_layernorm: norm()?,
            mlp: match at < config.first_k_dense_replace {
                true => FeedForward::Mlp(mlp(config, config.intermediate_size)?),
                false => FeedForward::Moe(Moe::new(config)?),
            },
        })
    }
}

#[trace(path = "fx_nn::models::hf::deepseek::Layer")]
impl Layer {
    pub(super) fn forward(
        &self,
        x: &Tensor,
        at: Positions,
        cache: Cache,
    ) -> Result<(Tensor, Cache)> {
        let h = self.input_layernorm.forward(x)?;
        let (h, cache) = self.self_attn.forward(&h, at, cache)?;
        let x = (x + h)?;
        let h = self.post_attention_layernorm.forward(&x)?;
        let h = match &self.mlp {
            FeedForward::Mlp(mlp) => mlp.forward(&h)?,
            FeedForward::Moe(moe) => moe.forward(&h)?,
        };
        Ok(((x + h)?, cache))
    }
}
