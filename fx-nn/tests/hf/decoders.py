"""Llama, Mistral, Qwen2, Gemma and GPT-2: words, and the scores of the words after them."""

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
    return {"expected": model(inputs["tokens"]).logits}


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
