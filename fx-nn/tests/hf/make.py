"""Writes small random models of Hugging Face's families, with inputs and outputs: `python make.py DIR`.

transformers 5.23.0 and torch 2.15.0; nothing is fetched. `cargo run --release -p fx-nn --example hf_parity -- DIR`
compares.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

import decoders
import encoders
import sequences
import states
from common import tokenizer

FAMILIES = {**decoders.FAMILIES, **encoders.FAMILIES, **sequences.FAMILIES, **states.FAMILIES}


def write(folder, name, family):
    """One folder for each dtype, with the model in shards, and `io.safetensors` beside it."""
    for dtype in (torch.float32, torch.bfloat16):
        target = folder / f"{name}-{str(dtype).removeprefix('torch.')}"
        model = family.model.to(dtype)
        model.save_pretrained(target, max_shard_size="60KB")
        if family.vocab_size:
            tokenizer(family.vocab_size).save_pretrained(target)
        inputs = {key: x.to(dtype) if x.is_floating_point() else x for key, x in family.inputs.items()}
        with torch.no_grad():
            outputs = family.run(model, inputs)
        outputs = {key: x.float().contiguous() for key, x in outputs.items()}
        save_file({**inputs, **outputs}, target / "io.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, family in FAMILIES.items():
        torch.manual_seed(0)
        write(folder, name, family())
        print(name)


main()
