"""Decoders: words, and the scores of the words after them."""

import torch
import transformers

from common import Family, spread

COMMON = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
WINDOWED = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
CONFIGS = {
    # Grouped keys, biases, and angles that are scaled.
    "llama": transformers.LlamaConfig(
        num_key_value_heads=2, mlp_bias=True, attention_bias=True, rope_parameters=SCALED, **COMMON
    ),
    # Layers that see a few positions back, and heads of their own width.
    "mistral": transformers.MistralConfig(num_key_value_heads=2, sliding_window=5, head_dim=24, **COMMON),
    # One head of keys, a head whose weights are the embedding's, windows in some layers.
    "qwen2": transformers.Qwen2Config(num_key_value_heads=1, tie_word_embeddings=True, **WINDOWED, **COMMON),
    "gemma": transformers.GemmaConfig(num_key_value_heads=1, head_dim=32, **COMMON),
    # Norms of queries and keys head by head, windows in the layers behind the first.
    "qwen3": transformers.Qwen3Config(num_key_value_heads=2, head_dim=24, **WINDOWED, **COMMON),
    # Experts in every second layer, of which each word uses three; windows in all layers.
    "qwen3_moe": transformers.Qwen3MoeConfig(
        num_key_value_heads=2,
        head_dim=16,
        num_experts=6,
        num_experts_per_tok=3,
        moe_intermediate_size=24,
        decoder_sparse_step=2,
        use_sliding_window=True,
        sliding_window=6,
        **COMMON,
    ),
    # The same with experts in all layers but one, and shares that add up to one.
    "qwen3_moe.normalized": transformers.Qwen3MoeConfig(
        num_key_value_heads=2,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=24,
        norm_topk_prob=True,
        mlp_only_layers=[1],
        **COMMON,
    ),
    "mixtral": transformers.MixtralConfig(
        num_key_value_heads=2, num_local_experts=4, sliding_window=5, **{**COMMON, "intermediate_size": 40}
    ),
    # Bounded scores, norms on both sides of each part, windows in every second layer.
    "gemma2": transformers.Gemma2Config(
        num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=24, sliding_window=5, **COMMON
    ),
    # Windows with angles of their own, in five of six layers; the others' angles are scaled.
    "gemma3_text": transformers.Gemma3TextConfig(
        num_key_value_heads=1,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        **COMMON,
    ),
    # Fused matrices, and angles that are others in texts longer than the first ones: this text is.
    "phi3": transformers.Phi3Config(
        num_key_value_heads=2,
        sliding_window=9,
        original_max_position_embeddings=8,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
            "long_factor": [1.0, 1.5, 2.5, 4.0, 8.0, 16.0],
            "original_max_position_embeddings": 8,
        },
        **COMMON,
    ),
    "phi3.plain": transformers.Phi3Config(**COMMON),
    "qwen3.yarn": transformers.Qwen3Config(
        num_key_value_heads=2,
        head_dim=24,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 16,
        },
        **COMMON,
    ),
    # Layer norms, biases everywhere, no gate.
    "starcoder2": transformers.Starcoder2Config(num_key_value_heads=2, sliding_window=5, **COMMON),
    # Factors of embeddings, scores, what layers add, and the words' scores.
    "granite": transformers.GraniteConfig(
        num_key_value_heads=2,
        embedding_multiplier=12.0,
        attention_multiplier=0.2,
        residual_multiplier=0.22,
        logits_scaling=8.0,
        **COMMON,
    ),
    # Norms after each part of a layer alone, and of all heads of queries and keys together.
    "olmo2": transformers.Olmo2Config(num_key_value_heads=2, **COMMON),
    # Learned positions, and scores that shrink from layer to layer.
    "gpt2": transformers.GPT2Config(
        vocab_size=96,
        n_positions=64,
        n_embd=64,
        n_layer=3,
        n_head=4,
        n_inner=112,
        scale_attn_by_inverse_layer_idx=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    ),
}


def scores(model, inputs):
    outputs = {"expected": model(inputs["tokens"]).logits}
    if getattr(model.config, "rope_parameters", {}).get("rope_type") == "longrope":
        # Keys keep the angles of the length that their text had: word by word there are other scores.
        outputs["cached"] = word_by_word(model, inputs["tokens"])
    return outputs


def word_by_word(model, tokens):
    cache, scores = None, []
    for word in tokens.split(1, dim=1):
        step = model(word, past_key_values=cache, use_cache=True)
        cache = step.past_key_values
        scores.append(step.logits)
    return torch.cat(scores, dim=1)


def family(config):
    model = spread(transformers.AutoModelForCausalLM.from_config(config))
    return Family(model, {"tokens": torch.randint(3, 96, (2, 14))}, scores, config.vocab_size)


def gpt2_bare():
    """The layers alone, whose embedding is the head."""
    model = spread(transformers.GPT2Model(CONFIGS["gpt2"]))

    def tied(model, inputs):
        states = model(inputs["tokens"]).last_hidden_state
        return {"expected": torch.nn.functional.linear(states, model.wte.weight)}

    return Family(model, {"tokens": torch.randint(3, 96, (2, 14))}, tied)


FAMILIES = {name: lambda config=config: family(config) for name, config in CONFIGS.items()}
FAMILIES["gpt2.bare"] = gpt2_bare
