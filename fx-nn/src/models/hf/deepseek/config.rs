//! `Config`: the fields of a DeepSeek-V2's `config.json`.

use fx_core::prelude::*;
use fx_core::value::DType;
use serde_json::Value as Json;

use super::super::activation::Activation;
use super::super::config::Fields;
use super::super::decoder::{RopeScaling, mscale, rope, theta_of};

/// The configuration of a DeepSeek-V2, as in its `config.json`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Number of words in the vocabulary.
    pub vocab_size: usize,
    /// The width between layers.
    pub hidden_size: usize,
    /// The inner width of the `mlp` of layers without experts.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of attention heads.
    pub num_attention_heads: usize,
    /// The width that queries are made from; `None` if they are made from the width between layers.
    pub q_lora_rank: Option<usize>,
    /// The width that keys and values are made from.
    pub kv_lora_rank: usize,
    /// The width of the part of queries and keys that is not rotated.
    pub qk_nope_head_dim: usize,
    /// The width of the part of queries and keys that is rotated.
    pub qk_rope_head_dim: usize,
    /// The width of a head of values.
    pub v_head_dim: usize,
    /// Whether queries and keys, before they are widened, and the attention's results have a bias.
    pub attention_bias: bool,
    /// Whether the layers of `mlp` have a bias.
    pub mlp_bias: bool,
    /// The activation of the gate of an `mlp` and of an expert.
    pub hidden_act: Activation,
    /// Number of first layers without experts.
    pub first_k_dense_replace: usize,
    /// The experts of the other layers.
    pub experts: ExpertsConfig,
    /// Number of positions.
    pub max_position_embeddings: usize,
    /// The epsilon that norms add to the mean square.
    pub rms_norm_eps: f64,
    /// The base of the rotary angles.
    pub rope_theta: f64,
    /// How angles are scaled for longer texts.
    pub rope_scaling: RopeScaling,
    /// The factor of scores: 1 over the root of the width of queries, more where angles are scaled.
    pub scaling: f64,
    /// Whether the head's weights are the embedding's.
    pub tie_word_embeddings: bool,
    /// The type to load the checkpoint in.
    pub dtype: DType,
}

/// The experts of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ExpertsConfig {
    /// How many there are to choose from.
    pub n_routed_experts: usize,
    /// How many of them read each word.
    pub num_experts_per_tok: usize,
    /// How many read all words.
    pub n_shared_experts: usize,
    /// The inner width of an expert.
    pub moe_intermediate_size: usize,
    /// The factor of the results of chosen experts.
    pub routed_scaling_factor: f64,
    /// The groups from the best of which experts are chosen; `None` to choose from all.
    pub groups: Option<Groups>,
}

/// Groups of experts, as many in each.
#[derive(Module, Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Groups {
    /// How many there are.
    pub n_group: usize,
    /// How many of them each word chooses from.
    pub topk_group: usize,
}

impl Config {
    /// Reads a `config.json`.
    ///
    /// # Errors
    /// Returns an error if a field is missing, has the wrong kind or an unsupported value, with a
    /// line for each.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut fields = Fields::parse(text)?;
        fields.only("model_type", "deepseek_v2");
        let num_attention_heads = fields.size("num_attention_heads");
        let keys = fields.size_or("num_key_value_heads", num_attention_heads);
        if keys != num_attention_heads {
            fields.problem(format!(
                "`num_key_value_heads` is {keys}: supported are as many as heads of queries, {num_attention_heads}"
            ));
        }
        if !fields.has("q_lora_rank") {
            fields.problem("`q_lora_rank` is missing: whole number above 0, or null");
        }
        let q_lora_rank = fields.get("q_lora_rank").is_some();
        let q_lora_rank = q_lora_rank.then(|| fields.size("q_lora_rank"));
        let max_position_embeddings = fields.size_or("max_position_embeddings", 2048);
        let (qk_nope_head_dim, qk_rope_head_dim) = (
            fields.size("qk_nope_head_dim"),
            fields.size("qk_rope_head_dim"),
        );
        if !qk_rope_head_dim.is_multiple_of(2) {
            fields.problem(format!(
                "`qk_rope_head_dim` is {qk_rope_head_dim}, and no even number"
            ));
        }
        let (rope_scaling, needed) = rope_scaling(&mut fields, max_position_embeddings);
        let width = qk_nope_head_dim.saturating_add(qk_rope_head_dim) as f64;
        let config = Config {
            vocab_size: fields.size("vocab_size"),
            hidden_size: fields.size("hidden_size"),
            intermediate_size: fields.size("intermediate_size"),
            num_hidden_layers: fields.layers(),
            num_attention_heads,
            q_lora_rank,
            kv_lora_rank: fields.size("kv_lora_rank"),
            qk_nope_head_dim,
            qk_rope_head_dim,
            v_head_dim: fields.size("v_head_dim"),
            attention_bias: fields.flag_or("attention_bias", false),
            mlp_bias: fields.flag_or("mlp_bias", false),
            hidden_act: Activation::of(&mut fields, "hidden_act", "silu"),
            first_k_dense_replace: fields.index_or("first_k_dense_replace", 0),
            experts: ExpertsConfig::of(&mut fields),
            max_position_embeddings,
            rms_norm_eps: fields.number_or("rms_norm_eps", 1e-6),
            rope_theta: theta_of(&mut fields, None, "rope_theta", 10000.0),
            rope_scaling,
            scaling: width.powf(-0.5) * needed * needed,
            tie_word_embeddings: fields.flag_or("tie_word_embeddings", false),
            dtype: fields.dtype(),
        };
        fields.finish()?;
        Ok(config)
    }

    /// The width of queries and keys.
    pub(super) fn qk_head_dim(&self) -> usize {
        self.qk_nope_head_dim + self.qk_rope_head_dim
    }
}

impl ExpertsConfig {
    fn of(fields: &mut Fields) -> Self {
        fields.only("scoring_func", "softmax");
        // Hugging Face's model leaves it out, and the first one has it in place of the factor.
        fields.only_false("norm_topk_prob");
        if fields.size_or("moe_layer_freq", 1) != 1 {
            fields.problem("`moe_layer_freq` is above 1: supported is 1");
        }
        let experts = fields.size_or("n_routed_experts", 64);
        let chosen = fields.size("num_experts_per_tok");
        if chosen > experts {
            fields.problem(format!(
                "`num_experts_per_tok` is {chosen}, and there are {experts} experts"
            ));
        }
        let groups = match &*fields.text_or("topk_method", "greedy") {
            "greedy" => None,
            "group_limited_greedy" => Some(Groups {
                n_group: fields.size("n_group"),
                topk_group: fields.size("topk_group"),
            }),
            other => {
                fields.problem(format!(
                    "`topk_method` is `{other}`: supported are greedy and group_limited_greedy"
                ));
                None
            }
        };
        if let Some(Groups {
            n_group,
            topk_group,
        }) = groups
        {
            if !experts.is_multiple_of(n_group) {
                fields.problem(format!(
                    "`n_group` is {n_group}, which does not divide {experts} experts"
                ));
            }
            if topk_group > n_group {
                fields.problem(format!(
                    "`topk_group` is {topk_group}, and there are {n_group} groups"
                ));
            }
        }
        ExpertsConfig {
            n_routed_experts: experts,
            num_experts_per_tok: chosen,
            n_shared_experts: fields.size_or("n_shared_experts", 2),
            moe_intermediate_size: fields.size("moe_intermediate_size"),
            routed_scaling_factor: fields.number_or("routed_scaling_factor", 1.0),
            groups,
        }
    }
}

/// How angles are scaled, and the factor of queries and of keys that comes with it.
fn rope_scaling(fields: &mut Fields, positions: usize) -> (RopeScaling, f64) {
    let name = rope(fields, None, "rope_type").or_else(|| rope(fields, None, "type"));
    let name = name.and_then(Json::as_str).unwrap_or("default").to_string();
    if name == "default" {
        return (RopeScaling::None, 1.0);
    }
    if name != "yarn" {
        fields.problem(format!(
            "the rotary scaling is `{name}`: supported are default and yarn"
        ));
    }
    let of = |value: &Json| value.as_f64().filter(|x| *x > 0.0 && x.is_finite());
    let numbers = [
        "factor",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "original_max_position_embeddings",
    ];
    for what in numbers {
        let found = rope(fields, None, what).filter(|value| of(value).is_none());
        if let Some(found) = found.cloned() {
            fields.problem(format!(
                "the rotary scaling `{name}` has a `{what}` of {found}, and no number above 0"
            ));
        }
    }
    if rope(fields, None, "partial_rotary_factor").is_some_and(|share| of(share) != Some(1.0)) {
        fields.problem("`partial_rotary_factor` is not 1: supported is 1");
    }
    let read = |what: &str| rope(fields, None, what).and_then(of);
    let truncate = rope(fields, None, "truncate").and_then(Json::as_bool);
    let scaling = RopeScaling::yarn(read, truncate, positions as f64);
    let factor = match &scaling {
        RopeScaling::Yarn { factor, .. } => *factor,
        _ => 1.0,
    };
    let needed = read("mscale_all_dim").map_or(1.0, |weight| mscale(factor, weight));
    (scaling, needed)
}
