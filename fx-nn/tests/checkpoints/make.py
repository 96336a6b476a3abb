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

# Every element type, and tensors that are views or more than tensors.
kinds = {
    "bool": torch.tensor([True, False, True]),
    "int8": torch.tensor([-128, 127], dtype=torch.int8),
    "int16": torch.tensor([-300, 300], dtype=torch.int16),
    "int32": torch.tensor([-70000, 70000], dtype=torch.int32),
    "uint16": torch.tensor([0, 65535], dtype=torch.uint16),
    "double": torch.tensor([0.1], dtype=torch.float64),
    "complex": torch.tensor([1 + 2j]),
    "expanded": torch.tensor([[3.0], [4.0]]).expand(2, 3),
    "parameter": torch.nn.Parameter(torch.tensor([5.0])),
    "none": torch.zeros(0, 4),
    "scalar": torch.tensor(7.0),
}
torch.save(kinds, here / "kinds.pth")
