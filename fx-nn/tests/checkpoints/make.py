"""Writes the PyTorch files beside this one, which `checkpoints.rs` reads: `python make.py`."""

import pathlib

import torch

here = pathlib.Path(__file__).parent
weight = torch.arange(12, dtype=torch.float32).reshape(3, 4)
both = torch.arange(8, dtype=torch.float32)
state = {
    "weight": weight,
    # A view that begins inside of its storage.
    "bias": both[4:7],
    # A transposed one.
    "turned": weight.t(),
    "half": weight.half() / 4,
    "bfloat": weight.bfloat16() / 4,
    "count": torch.tensor([2**40, -1]),
}
torch.save(state, here / "state.pth")
torch.save({"epoch": 3, "state_dict": {"weight": weight, "bias": both[4:7]}}, here / "training.pt")
torch.save(state, here / "old.pth", _use_new_zipfile_serialization=False)
# Elements 0, 2, 4 of a storage: neither in order nor turned.
torch.save({"weight": torch.arange(24, dtype=torch.float32).reshape(3, 8)[:, ::2]}, here / "strided.pth")
