"""Writes small random models of Hugging Face's families, with inputs and outputs: `python make.py DIR`.

transformers 5.23.0 and torch 2.15.0; nothing is fetched. `cargo run --release -p fx-nn --example hf_parity -- DIR`
compares. `python make.py --sample fx-nn/tests/hf/recorded` writes the sample that `cargo test` compares. Names of families
behind the folder write those alone.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

import decoders
import deepseek
import encoders
import sequences
import states
from common import tokenizer

FAMILIES = {**decoders.FAMILIES, **deepseek.FAMILIES, **encoders.FAMILIES, **sequences.FAMILIES, **states.FAMILIES}


def saved(model, family, target):
    """A folder as Hugging Face has it: the model in shards, and a tokenizer where it reads text."""
    model.save_pretrained(target, max_shard_size="60KB")
    if family.vocab_size:
        tokenizer(family.vocab_size).save_pretrained(target)


def compared(model, family, dtype, target):
    """Inputs and outputs of the model, in `io.safetensors` beside it."""
    inputs = {key: x.to(dtype) if x.is_floating_point() else x for key, x in family.inputs.items()}
    with torch.no_grad():
        outputs = family.run(model, inputs)
    outputs = {key: x.float().contiguous() for key, x in outputs.items()}
    save_file({**inputs, **outputs}, target / "io.safetensors")


def write(folder, name, family):
    """One folder for each dtype."""
    for dtype in (torch.float32, torch.bfloat16):
        target = folder / f"{name}-{str(dtype).removeprefix('torch.')}"
        model = family.model.to(dtype)
        saved(model, family, target)
        compared(model, family, dtype, target)


def write_sample(folder, name, family):
    """One folder: weights that are saved in bfloat16, which halves them, and outputs in float32."""
    target = folder / f"{name}-float32"
    saved(family.model.to(torch.bfloat16), family, target)
    path = target / "config.json"
    path.write_text(path.read_text().replace('"bfloat16"', '"float32"'))
    # Read again: what the model computes, such as angles, is not rounded.
    model = type(family.model).from_pretrained(target, dtype=torch.float32).eval()
    compared(model, family, torch.float32, target)


def main():
    arguments = sys.argv[1:]
    is_sample = arguments[:1] == ["--sample"]
    folder, *names = arguments[is_sample:]
    for name, family in FAMILIES.items():
        if is_sample and "." in name or names and name not in names:
            continue
        torch.manual_seed(0)
        (write_sample if is_sample else write)(pathlib.Path(folder), name, family())
        print(name)


main()
