//! Rules of known families of models, as Megatron has them; what a model lacks is no error.

use super::rules::ShardRules;
use super::sharding::DimSharding;

impl ShardRules {
    /// Weights and bias of linear layers whose results are shared.
    fn column(self, axis: &str, layers: &str) -> Self {
        let of = || DimSharding::from(axis);
        self.optional(
            format!("**.{layers}.weight"),
            [of(), DimSharding::replicated()],
        )
        .optional(format!("**.{layers}.bias"), [of()])
    }

    /// Weights and bias of linear layers whose inputs are shared: their results are summed over the axis.
    fn row(self, axis: &str, layers: &str) -> Self {
        let of = || DimSharding::from(axis);
        self.optional(
            format!("**.{layers}.weight"),
            [DimSharding::replicated(), of()],
        )
        .optional(format!("**.{layers}.bias"), [DimSharding::replicated()])
    }

    /// Llama, Mistral, Qwen2 and Gemma: heads, the inner width of each `mlp`, and the vocabulary are shared.
    ///
    /// ```
    /// use fx_stablehlo::shard::ShardRules;
    /// let rules = ShardRules::llama("model").and(ShardRules::data_parallel("data"));
    /// assert!(!rules.is_empty());
    /// ```
    pub fn llama(axis: &str) -> Self {
        let rules = ShardRules::new().column(axis, "{q_proj,k_proj,v_proj,gate_proj,up_proj}");
        let rules = rules.row(axis, "{o_proj,down_proj}");
        rules.column(axis, "{embed_tokens,lm_head}")
    }

    /// GPT-2: heads, the inner width of each `mlp`, and the vocabulary are shared. Queries, keys and values are one
    /// weight, whose results are gathered before they are taken apart. Below `transformer`, as in
    /// [`hf::gpt2`](fx_nn::models::hf::gpt2), weights are `[in, out]`.
    pub fn gpt2(axis: &str) -> Self {
        let shared = || DimSharding::from(axis);
        let whole = DimSharding::replicated;
        ShardRules::new()
            .optional("h.*.*.{c_attn,c_fc}.weight", [shared(), whole()])
            .optional(
                "transformer.h.*.*.{c_attn,c_fc}.weight",
                [whole(), shared()],
            )
            .optional("**.{c_attn,c_fc}.bias", [shared()])
            .optional("h.*.*.c_proj.weight", [whole(), shared()])
            .optional("transformer.h.*.*.c_proj.weight", [shared(), whole()])
            .optional("**.c_proj.bias", [whole()])
            .column(axis, "{wte,lm_head}")
    }

    /// torchvision's vision transformers, and those of Hugging Face: heads, and the inner width of each `mlp`.
    /// torchvision's queries, keys and values are one weight, which is gathered before it is taken apart.
    pub fn vit(axis: &str) -> Self {
        let rules =
            ShardRules::new().column(axis, "{query,key,value,intermediate.dense,fc1,mlp.0}");
        let rules = rules.row(axis, "{out_proj,output.dense,fc2,mlp.3}");
        let shared = || DimSharding::from(axis);
        rules
            .optional("**.in_proj_weight", [shared(), DimSharding::replicated()])
            .optional("**.in_proj_bias", [shared()])
    }
}
