//! `Layer`: attention, and an `mlp` or experts, with norms around them.

use fx_core::prelude::*;

use super::super::activation::Activation;
use super::attention::{Attention, Cache, Positions};
use super::config::{Config, NormPlaces};
use super::experts::SparseMoe;
use super::norm::Norm;
use crate::nn;
use crate::tensor::Tensor;

/// A gated layer: the activated gate times `up_proj`, through `down_proj`; without a gate, the activated `up_proj`.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// The gate, if there is one.
    pub gate_proj: Option<nn::Linear>,
    /// The gated values.
    pub up_proj: nn::Linear,
    /// Back to the width between layers.
    pub down_proj: nn::Linear,
    activation: Activation,
}

impl Mlp {
    /// One between widths `width` and `inside`.
    pub(in super::super) fn new(
        [width, inside]: [usize; 2],
        has_gate: bool,
        bias: bool,
        activation: Activation,
    ) -> Result<Self> {
        let linear = |from, to| -> Result<_> { Ok(nn::Linear::new(from, to)?.bias(bias)) };
        Ok(Mlp {
            gate_proj: has_gate.then(|| linear(width, inside)).transpose()?,
            up_proj: linear(width, inside)?,
            down_proj: linear(inside, width)?,
            activation,
        })
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Mlp")]
impl Mlp {
    pub(in super::super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inside = match &self.gate_proj {
            Some(gate) => {
                let gate = gate.forward(x)?;
                let gate = self.activation.apply(&gate)?;
                (gate * self.up_proj.forward(x)?)?
            }
            None => self.activation.apply(&self.up_proj.forward(x)?)?,
        };
        self.down_proj.forward(&inside)
    }
}

/// What stands behind the attention of a layer.
#[derive(Module, Clone, Debug)]
#[non_exhaustive]
pub enum FeedForward {
    /// One for all words.
    Mlp(#[module(flatten)] Mlp),
    /// Experts, of which each word uses a few.
    Experts(#[module(flatten)] SparseMoe),
}

impl FeedForward {
    fn new(config: &Config, layer: usize) -> Result<Self> {
        let experts = config.experts.as_ref();
        let experts = experts.filter(|experts| experts.layers.get(layer).is_some_and(|has| *has));
        Ok(match experts {
            Some(experts) => FeedForward::Experts(SparseMoe::new(config, experts)?),
            None => FeedForward::Mlp(Mlp::new(
                [config.hidden_size, config.intermediate_size],
                config.has_gate,
                config.mlp_bias,
                config.activation,
            )?),
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            FeedForward::Mlp(mlp) => mlp.forward(x),
            FeedForward::Experts(experts) => experts.forward(x),
        }
    }
}

/// Attention and `mlp`, each with norms before or after it, and added to its input.
#[derive(Module, Clone, Debug)]
pub struct Layer {
    /// Before the attention.
    pub input_layernorm: Option<Norm>,
    /// The attention.
    pub self_attn: Attention,
    /// After the attention: before its results are added if there are norms after the parts of a layer, and else of their
    /// sum, for the `mlp`.
    pub post_attention_layernorm: Norm,
    /// Before the `mlp`, if the norm above is not.
    pub pre_feedforward_layernorm: Option<Norm>,
    /// The `mlp`.
    pub mlp: FeedForward,
    /// After the `mlp`.
    pub post_feedforward_layernorm: Option<Norm>,
    multiplier: Option<f64>,
}

impl Layer {
    pub(super) fn new(config: &Config, layer: usize) -> Result<Self> {
        let (places, width) = (config.norm_places, config.hidden_size);
        let norm = |is_there: bool| is_there.then(|| Norm::new(config, width)).transpose();
        Ok(Layer {
            input_layernorm: norm(places != NormPlaces::After)?,
            self_attn: Attention::new(config)?,
            post_attention_layernorm: Norm::new(config, width)?,
            pre_feedforward_layernorm: norm(places == NormPlaces::Both)?,
            mlp: FeedForward::new(config, layer)?,
            post_feedforward_layernorm: norm(places != NormPlaces::Before)?,
            multiplier: config.residual_multiplier,
        })
    }

    fn plus(&self, x: &Tensor, part: Tensor) -> Result<Tensor> {
        match self.multiplier {
            Some(multiplier) => x + (part * multiplier)?,
            None => x + part,
        }
    }
}

#[trace(path = "fx_nn::models::hf::decoder::Layer")]
impl Layer {
    pub(super) fn forward(
        &self,
        x: &Tensor,
        at: Positions,
        caches: Vec<Cache>,
    ) -> Result<(Tensor, Vec<Cache>)> {
        let h = match &self.input_layernorm {
            Some(norm) => norm.forward(x)?,
            None => x.clone(),
        };
        let (h, caches) = self.self_attn.forward(&h, at, caches)?;
        let Some(after) = &self.post_feedforward_layernorm else {
            let x = self.plus(x, h)?;
            let h = self.post_attention_layernorm.forward(&x)?;
            let h = self.mlp.forward(&h)?;
            return Ok((self.plus(&x, h)?, caches));
        };
        let h = self.post_attention_layernorm.forward(&h)?;
        let x = self.plus(x, h)?;
        let h = match &self.pre_feedforward_layernorm {
            Some(norm) => norm.forward(&x)?,
            None => x.clone(),
        };
        let h = after.forward(&self.mlp.forward(&h)?)?;
        Ok((self.plus(&x, h)?, caches))
    }
}
