"""DeepSeek-V2: words, and the scores of the words after them, by keys and values out of narrow vectors and by experts."""

import torch
import transformers

from common import Family, spread
from decoders import COMMON, scores

NARROW = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 20,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
}
SCALED = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 4,
    "beta_slow": 1,
    "mscale": 0.707,
    "mscale_all_dim": 1.0,
}
GROUPED = {"topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2, "routed_scaling_factor": 2.5}


def family(length=23, **options):
    """Texts longer than those before angles were scaled."""
    config = transformers.DeepseekV2Config(**{**COMMON, **NARROW, **options})
    model = spread(transformers.DeepseekV2ForCausalLM(config))
    return Family(model, {"tokens": torch.randint(3, 96, (2, length))}, scores)


FAMILIES = {
    # Queries out of narrow vectors too, groups of experts, and angles that are scaled.
    "deepseek_v2": lambda: family(q_lora_rank=24, attention_bias=True, rope_parameters=SCALED, **GROUPED),
    # Nothing but experts, each word's of all of them.
    "deepseek_v2.plain": lambda: family(
        length=14, q_lora_rank=None, first_k_dense_replace=0, n_shared_experts=1, mlp_bias=True, num_experts_per_tok=3
    ),
    # As the smaller model has it: scaled angles whose scores have a factor, and no factor of sines and cosines.
    "deepseek_v2.lite": lambda: family(
        length=40,
        q_lora_rank=None,
        tie_word_embeddings=True,
        first_k_dense_replace=2,
        rope_parameters={**SCALED, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32},
    ),
    # One group, one expert, and a rule of its own for the factor of sines and cosines.
    "deepseek_v2.one": lambda: family(
        length=31,
        q_lora_rank=16,
        n_routed_experts=8,
        num_experts_per_tok=1,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "yarn", "rope_theta": 500.0, "factor": 2.0, "original_max_position_embeddings": 32},
        **{**GROUPED, "n_group": 4, "topk_group": 1},
    ),
}
