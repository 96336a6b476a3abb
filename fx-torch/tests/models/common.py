"""What a program is, and inputs that are the same in every run."""

import dataclasses
import typing

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
