"""Exports the model that `models:make` makes as `model.pt2`, for fx: python export.py [FILE]"""

import sys

import torch

from models import make

model = make().eval()
inputs = {
    "ids": torch.zeros([2, 5], dtype=torch.int64),
    "scale": torch.zeros([3], dtype=torch.float32),
}
# Sizes with a name may be any; the others are fixed.
batch = torch.export.Dim("batch")
length = torch.export.Dim("length")
dynamic_shapes = {
    "ids": {0: batch, 1: length},
    "scale": {},
}
program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic_shapes, strict=False)
torch.export.save(program, sys.argv[1] if len(sys.argv) > 1 else "model.pt2")
