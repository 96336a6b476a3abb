"""What a program is, and inputs that are the same in every run."""

import contextlib
import dataclasses
import importlib
import pathlib
import re
import typing
import zipfile

import torch

OPEN = torch.export.Dim.DYNAMIC
# Added to every seed: the second run of a program whose sizes are fixed has other inputs.
SALT = [0]


@dataclasses.dataclass
class Program:
    """A module, its inputs at a size (whose first number is the batch), its open dims and two sizes."""

    make: typing.Callable
    inputs: typing.Callable
    dims: typing.Any
    sizes: list
    # Parts of the names of layers that change no result by their nature.
    silent: tuple = ()


def placed(program):
    """Names lines from the repository's root, and those of packages from where they are installed."""
    roots = [pathlib.Path(__file__).parents[3], pathlib.Path(torch.__file__).parents[1]]
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            for root in roots if node.meta.get("stack_trace") else []:
                node.meta["stack_trace"] = node.meta["stack_trace"].replace(f"{root}/", "")


def registered(file):
    """Imports the modules whose classes the results of a program are, without which PyTorch does not load it."""
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/models/model.json"))
        text = archive.read(name).decode()
    for name in set(re.findall(r"transformers(?:\.\w+)+(?=\.\w+)", text)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def seeded(*sizes):
    return torch.Generator().manual_seed(sum(sizes) + SALT[0])


def floats(*sizes):
    return torch.randn(*sizes, generator=seeded(*sizes))


def indices(high, *sizes):
    return torch.randint(0, high, sizes, generator=seeded(*sizes))


def padded(n, m):
    """A mask whose rows end earlier one after another; the first one is whole."""
    ends = m - torch.arange(n) % max(m - 1, 1)
    return (torch.arange(m)[None] < ends[:, None]).long()
