"""Programs of torch.export, with PyTorch's results at two sizes, for `examples/judge.rs`.

    python fx-torch/tests/make.py DIR [--only PART,PART] [--family NAME] [--again] [--small]

writes DIR/NAME.pt2 and DIR/NAME_0.npz, DIR/NAME_1.npz: `in_00`, .. and `out_00`, .., and `out64_00`, .. of the same module in
float64, where it runs in that. Parameters and running statistics are drawn anew, so that a part that is left out shows, and
weights are scaled until what each layer gives has a deviation of 1. A program is left out if scaling half of a layer's weight
changes no result: an error there would not show. What is left out has its reason in DIR/NAME.left.
A second run goes on where the first one ended; `--again` tries what was left out. `--small` writes the programs of the tests
(tests/data) alone. Needs torch, torchvision and transformers; nothing is downloaded.
"""

import argparse
import importlib
import logging
import pathlib
import signal
import time
import warnings

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import nn

from models import common

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
FAMILIES = ["language", "vision", "seen", "heard", "operators", "functions"]
LARGEST = 400 << 20
SECONDS = 300
# How many layers are tried, and how far each has to move a result, over its largest element.
TRIED, MOVED = 24, 1e-3
# How often weights are drawn.
DRAWS = 3


def tensors(structure):
    return [x for x in pytree.tree_leaves(structure) if isinstance(x, torch.Tensor)]


class Weak(ValueError):
    """A program that would not show an error."""


def drawn(module, seed):
    """Draws everything anew: with initial values a part that is left out may not show."""
    generator = torch.Generator().manual_seed(seed)
    running = [item for item in module.named_buffers() if item[0].rsplit(".", 1)[-1] in ("running_mean", "running_var")]
    with torch.no_grad():
        for name, x in [*module.named_parameters(), *running]:
            if not x.is_floating_point():
                continue
            last = name.rsplit(".", 1)[-1]
            is_scale = last in ("running_var", "gamma", "layer_scale", "layer_scale_parameter", "lambda1", "scale")
            if is_scale or (x.dim() <= 1 and last.startswith("weight")):
                x.copy_(torch.rand(x.shape, generator=generator) + 0.5)
            elif x.dim() <= 1:
                x.copy_(torch.rand(x.shape, generator=generator) - 0.5)
            else:
                # An element of a product over the last dims; a table of rows has no such.
                ends = x.shape[1:].numel() if x.dim() != 3 or "conv" in name else x.shape[-1]
                is_table = any(part in name for part in ("embed", "bias", "table"))
                x.copy_(torch.randn(x.shape, generator=generator) / (1 if is_table else ends) ** 0.5)


def scaled(module, given):
    """Scales each weight when its layer runs first, so that the layer gives a deviation of 1."""
    from transformers.pytorch_utils import Conv1D

    done = set()

    def hook(layer, _, result):
        weight = layer._parameters.get("weight")
        if layer in done or weight is None or not isinstance(result, torch.Tensor):
            return None
        done.add(layer)
        bias = 0
        if layer.bias is not None:
            is_last = isinstance(layer, (nn.Linear, Conv1D))
            bias = layer.bias if is_last else layer.bias.view(-1, *[1] * (weight.dim() - 2))
        own = result - bias
        deviation = own.std()
        if not 1e-9 < deviation < 1e9:
            return None
        weight.div_(deviation)
        return own / deviation + bias

    kinds = (nn.Linear, Conv1D, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    hooks = [layer.register_forward_hook(hook) for layer in module.modules() if isinstance(layer, kinds)]
    with torch.no_grad():
        module(**given())
    for hook in hooks:
        hook.remove()


def weak(module, given, results, used, silent):
    """The first layer that moves no result, of those that the program uses."""
    layers = []
    for name, layer in module.named_modules():
        own = [at for at, _ in layer.named_parameters(recurse=False) if f"{name}.{at}".lstrip(".") in used]
        if own and not any(part in f"{name}." for part in silent):
            layers.append((name, layer, own))
    for at in np.unique(np.linspace(0, len(layers) - 1, min(TRIED, len(layers))).astype(int)):
        name, layer, own = layers[at]
        most = 0.0
        for key in own:
            x = getattr(layer, key)
            kept = x.detach().clone()
            with torch.no_grad():
                # A norm behind it would undo a scale of all.
                flat = x.reshape(-1).clone()
                flat[::2] *= 1.5
                x.copy_(flat.view(x.shape))
                others = tensors(module(**given()))
                x.copy_(kept)
            for a, b in zip(results, others):
                a, b = a.double(), b.double()
                if a.shape == b.shape and a.numel():
                    most = max(most, float((a - b).abs().nan_to_num().max() / a.abs().nan_to_num(0, 0, 0).max().clamp_min(1e-30)))
                elif a.shape != b.shape:
                    most = 1.0
            if most >= MOVED:
                break
        if most < MOVED:
            return f"{name}, a {type(layer).__name__}, moves results by {most:.0e}"
    return None


def live(program):
    """The parameters that reach a result, or something that is written."""
    reached = set()
    for node in reversed(program.graph.nodes):
        parts = str(node.target).split(".")
        is_written = len(parts) == 3 and parts[1].endswith("_")
        if node.op == "output" or node in reached or is_written:
            reached |= set(node.all_input_nodes)
    names = {node.name for node in reached}
    return {path for key, path in program.graph_signature.inputs_to_parameters.items() if key in names}


def narrower(dims, is_open):
    """The dims whose number is of those that stay open."""
    if isinstance(dims, dict):
        if all(isinstance(key, int) for key in dims):
            return {key: value for key, value in dims.items() if is_open(key)} or None
        return {key: narrower(value, is_open) for key, value in dims.items()}
    return type(dims)(narrower(value, is_open) for value in dims) if isinstance(dims, (list, tuple)) else dims


def exported(module, program):
    """The program with as many open dims as torch allows, the second size, and what torch says of those that it fixes."""
    first, second = program.sizes
    ways = [(lambda key: True, second), (lambda key: key == 0, (second[0], *first[1:])), (lambda key: False, first)]
    said = None
    for is_open, other in ways:
        dims = narrower(program.dims, is_open)
        try:
            made = torch.export.export(module, (), program.inputs(*first), dynamic_shapes=dims, strict=False)
            if other != first:
                # A size that the program asserts not to be given, and that says so only in a run.
                with torch.no_grad():
                    made.module()(**program.inputs(*other))
            return made, other, said
        except TimeoutError:
            raise
        except Exception as error:
            said = said or message(error)
            last = error
    raise last


def message(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:300]}"


def arrays(kind, all):
    # NumPy writes the order of the memory too, which says nothing here.
    return {f"{kind}_{at:02}": x.detach().contiguous().numpy() for at, x in enumerate(all)}


def wide(structure):
    of = lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
    return pytree.tree_map(of, structure)


def written(folder, name, program, is_small):
    """Writes a program; gives what is to be said of it. Weights by which layers show nothing are drawn once more."""
    for seed in range(1, DRAWS):
        try:
            return written_by(folder, name, program, is_small, seed)
        except Weak:
            pass
    return written_by(folder, name, program, is_small, DRAWS)


def written_by(folder, name, program, is_small, seed):
    torch.manual_seed(0)
    module = program.make().eval()
    given = lambda: program.inputs(*program.sizes[0])
    drawn(module, seed)
    size = sum(x.numel() * x.element_size() for x in [*module.parameters(), *module.buffers()])
    if size > LARGEST:
        raise ValueError(f"{size >> 20} MB of weights")
    if not is_small:
        scaled(module, given)
    made, other, said = exported(module, program)
    runs, notes = [], [f"fixed sizes ({said})"] if said else []
    for at, sizes in enumerate([program.sizes[0], other]):
        common.SALT[0] = at if sizes == program.sizes[0] else 0
        with torch.no_grad():
            results = tensors(module(**program.inputs(*sizes)))
        if not is_small and any(x.is_floating_point() and x.isnan().any() for x in results):
            raise Weak("too weak: a result is not a number")
        # An input that `forward` writes is as it was.
        runs.append((common.SALT[0], sizes, arrays("in", tensors(program.inputs(*sizes))) | arrays("out", results)))
    common.SALT[0] = 0
    if not is_small:
        used = live(made)
        with torch.no_grad():
            found = weak(module, given, tensors(module(**given())), used, program.silent)
        if found:
            raise Weak(f"too weak: {found}")
    common.placed(made)
    torch.export.save(made, folder / f"{name}.pt2.part")
    try:
        module.double()
        for salt, sizes, all in runs:
            common.SALT[0] = salt
            with torch.no_grad():
                all |= arrays("out64", [x.double() for x in tensors(module(**wide(program.inputs(*sizes)))) ])
    except TimeoutError:
        raise
    except Exception as error:
        notes.append(f"no float64 ({message(error)[:100]})")
    finally:
        common.SALT[0] = 0
    for at, (_, _, all) in enumerate(runs):
        np.savez(folder / f"{name}_{at}.npz", **all)
    (folder / f"{name}.pt2.part").rename(folder / f"{name}.pt2")
    return "; ".join(notes)


def late(*_):
    raise TimeoutError(f"over {SECONDS} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="parts of names, one of which a program has to have")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--again", action="store_true", help="tries what was left out")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    families = ["small"] if options.small else [options.family] if options.family else FAMILIES
    programs = {}
    for family in families:
        programs |= importlib.import_module(f"models.{family}").PROGRAMS
    signal.signal(signal.SIGALRM, late)
    made, left = 0, 0
    for name, program in programs.items():
        if not any(part in name for part in options.only.split(",")):
            continue
        path, reason = folder / f"{name}.pt2", folder / f"{name}.left"
        if reason.exists() and not options.again:
            left += 1
            print(f"left out {name}: {reason.read_text()}", flush=True)
            continue
        if not path.exists():
            start = time.time()
            signal.alarm(SECONDS)
            try:
                said = written(folder, name, program, options.small)
                reason.unlink(missing_ok=True)
                print(f"{name} {time.time() - start:.1f} s {said}".rstrip(), flush=True)
            except Exception as error:
                left += 1
                reason.write_text(message(error))
                print(f"left out {name}: {message(error)}", flush=True)
                continue
            finally:
                signal.alarm(0)
        made += 1
    print(f"programs {made} left_out {left}")


if __name__ == "__main__":
    main()
