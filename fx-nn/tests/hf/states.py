"""Mamba: words, and the scores of the words after them, from states instead of attention."""

import torch
import transformers

from common import Family, spread

COMMON = {
    "vocab_size": 96,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
CONFIGS = {
    # A rank of its own, biases everywhere, and a head of its own.
    "mamba": transformers.MambaConfig(
        state_size=8, conv_kernel=3, time_step_rank=6, use_bias=True, use_conv_bias=True, tie_word_embeddings=False, **COMMON
    ),
    # As few biases as there can be, and what goes around layers in the type of the weights.
    "mamba.plain": transformers.MambaConfig(use_conv_bias=False, residual_in_fp32=False, **COMMON),
}


def scores(model, inputs):
    """The sequential scan: no kernels are installed that would take its place."""
    return {"expected": model(inputs["tokens"]).logits}


def family(config):
    model = spread(transformers.MambaForCausalLM(config))
    return Family(model, {"tokens": torch.randint(3, 96, (2, 14))}, scores)


FAMILIES = {name: lambda config=config: family(config) for name, config in CONFIGS.items()}
