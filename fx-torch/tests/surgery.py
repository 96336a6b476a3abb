"""Models that are changed by their paths, for `examples/surgery.rs`.

    python fx-torch/tests/surgery.py DIR

writes, for ten models, DIR/NAME.pt2 and what PyTorch gives after each change, for the same input:

- `NAME_weights.npz` with another state dict, `NAME_weights.safetensors`, by PyTorch's names;
- `NAME_lora.npz` with adapters of rank 2 at every linear layer that is called, `NAME_lora.safetensors` (`PATH.lora_a`, `PATH.lora_b`);
- `NAME_replaced.npz` with `tanh(x) * 0.5` in place of every activation of `torch.nn`.
"""

import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

import make
from models import language, vision

NAMES = ["bert", "distilbert", "gpt2", "llama", "t5_encoder", "resnet18", "mobilenet_v3_small", "convnext_tiny", "vit_b_32", "swin_t"]
RANK, SCALE = 2, 0.5
ACTIVATIONS = (nn.ReLU, nn.GELU, nn.SiLU, nn.Hardswish, nn.Hardsigmoid, nn.Tanh, nn.ReLU6)


class Other(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 0.5


def results(path, module, given):
    with torch.no_grad():
        all = make.arrays("out", make.tensors(module(**given)))
    np.savez(path, **make.arrays("in", make.tensors(given)), **all)


def called(module, given):
    """The modules that a run calls: what others read the weights of is no layer."""
    names, all = {layer: path for path, layer in module.named_modules()}, {}

    def hook(layer, *_):
        all[names[layer]] = layer

    hooks = [layer.register_forward_hook(hook) for layer in names]
    with torch.no_grad():
        module(**given)
    for hook in hooks:
        hook.remove()
    return all


def changed(folder, name, program):
    def fresh():
        torch.manual_seed(0)
        module = program.make().eval()
        make.drawn(module, 1)
        return module

    given = program.inputs(*program.sizes[0])
    made, _, _ = make.exported(fresh(), program)
    torch.export.save(made, folder / f"{name}.pt2")

    module = fresh()
    make.drawn(module, 7)
    save_file({key: x.contiguous().clone() for key, x in module.state_dict().items()}, folder / f"{name}_weights.safetensors")
    results(folder / f"{name}_weights.npz", module, given)

    module, adapters = fresh(), {}
    generator = torch.Generator().manual_seed(3)
    for path, layer in called(module, given).items():
        if type(layer) is nn.Linear:
            a = torch.randn(RANK, layer.in_features, generator=generator) / layer.in_features**0.5
            b = torch.randn(layer.out_features, RANK, generator=generator)
            adapters |= {f"{path}.lora_a": a, f"{path}.lora_b": b}
            # A tied table stays as it is where it is looked up.
            layer.weight = nn.Parameter(layer.weight + SCALE * b @ a)
    save_file(adapters, folder / f"{name}_lora.safetensors")
    results(folder / f"{name}_lora.npz", module, given)

    module = fresh()
    for path, layer in list(module.named_modules()):
        if type(layer) in ACTIVATIONS:
            module.set_submodule(path, Other())
    results(folder / f"{name}_replaced.npz", module, given)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    programs = language.PROGRAMS | vision.PROGRAMS
    for name in NAMES:
        if not (folder / f"{name}_replaced.npz").exists():
            changed(folder, name, programs[name])
            print(name, flush=True)


if __name__ == "__main__":
    main()
