"""Writes small random models of Hugging Face's families, with inputs and outputs: `python make.py DIR`.

transformers 5.23.0 and torch 2.15.0; nothing is fetched. `cargo run --release -p fx-nn --example hf_parity -- DIR`
compares.
"""

import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file

torch.manual_seed(0)
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
FAMILIES = {
    # Grouped keys, biases, and angles that are scaled.
    "llama": transformers.LlamaConfig(
        num_key_value_heads=2, mlp_bias=True, attention_bias=True, rope_parameters=SCALED, **COMMON
    ),
    # Layers that see a few positions back, and heads of their own width.
    "mistral": transformers.MistralConfig(num_key_value_heads=2, sliding_window=5, head_dim=24, **COMMON),
    # One head of keys, a head whose weights are the embedding's, windows in some layers.
    "qwen2": transformers.Qwen2Config(num_key_value_heads=1, tie_word_embeddings=True, **WINDOWED, **COMMON),
    "gemma": transformers.GemmaConfig(num_key_value_heads=1, head_dim=32, **COMMON),
}


def spread(model):
    """Weights as large as those of trained models, norms other than one."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 1.0 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def write(folder, family, config):
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    spread(model)
    tokens = torch.randint(3, 96, (2, 14))
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        own = model.to(dtype)
        target = folder / f"{family}-{name}"
        own.save_pretrained(target, max_shard_size="60KB")
        with torch.no_grad():
            logits = own(tokens).logits
        save_file({"tokens": tokens, "expected": logits.float().contiguous()}, target / "io.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1])
    for family, config in FAMILIES.items():
        write(folder, family, config)
        print(family)


main()
