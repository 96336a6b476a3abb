"""Random calls of what makes floats integers of few bits, and back."""

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401

from calls import op
from values import FLOATS, T

OPS = torch.ops.quantized_decomposed
RANGES = {"uint8": [(0, 255), (0, 127), (0, 15)], "int8": [(-128, 127), (-127, 127), (-8, 7)]}


def affine(s, x, low, high):
    """A scale, a zero point and an axis for a tensor: numbers, or a number for each index along the axis."""
    scale = s.pick(0.25, 0.1, 0.031, 1.5, 0.0078125)
    zero = s.r.randint(low, high)
    rank = x.tensor.dim()
    if x.tensor.numel() == 0 or rank == 0 or s.chance(0.5):
        return [scale, zero], None
    axis = s.dim(rank)
    size = x.tensor.shape[axis] if -rank <= axis < rank else 1
    size += 2 if s.chance(0.03) else 0
    scales = T(torch.rand(size, generator=torch.Generator().manual_seed(s.r.randrange(2**31))) * 0.5 + 0.01)
    zeros = T(torch.tensor([s.r.randint(low, high) for _ in range(size)], dtype=torch.int64))
    return [scales, zeros], axis


def quantized(x, scale, zero, low, high, dtype, axis):
    # Its judge is not of another type: integers are equal.
    x = x.to(torch.float32)
    if axis is None:
        return OPS.quantize_per_tensor(x, scale, zero, low, high, dtype)
    return OPS.quantize_per_channel(x, scale.to(torch.float32), zero, axis, low, high, dtype)


@op("quantize_affine", quantized)
def _(s):
    x = s.tensor(s.shape(), s.pick(*FLOATS, "int64" if s.chance(0.1) else "float32"), s.pick("normal", "small"))
    dtype = s.pick("uint8", "int8")
    low, high = s.pick(*RANGES[dtype])
    (scale, zero), axis = affine(s, x, low, high)
    return [x, scale, zero, low, high, getattr(torch, dtype), axis]


def dequantized(x, scale, zero, axis):
    low, high = (0, 255) if x.dtype == torch.uint8 else (-128, 127)
    if axis is None:
        return OPS.dequantize_per_tensor(x, scale, zero, low, high, x.dtype)
    return OPS.dequantize_per_channel(x, scale.to(torch.float32), zero, axis, low, high, x.dtype)


@op("dequantize_affine", dequantized)
def _(s):
    dtype = s.pick("uint8", "int8") if s.chance(0.95) else "float32"
    x = s.tensor(s.shape(), dtype, None if dtype == "float32" else "wide", views=dtype != "int8")
    (scale, zero), axis = affine(s, x, 0, 100)
    return [x, scale, zero, axis]


def stepped(x, scale, zero, low, high, axis):
    wide = x.to(torch.float32)
    if axis is None:
        y = torch.fake_quantize_per_tensor_affine(wide, scale, zero, low, high)
    else:
        if not -x.dim() <= axis < x.dim():
            raise IndexError("axis")
        y = torch.fake_quantize_per_channel_affine(wide, scale.to(torch.float32), zero.to(torch.int32), axis % x.dim(), low, high)
    return y.to(x.dtype)


@op("fake_quantize_affine", stepped)
def _(s):
    x = s.tensor(s.shape(), s.pick(*FLOATS, "int64" if s.chance(0.1) else "float32"), s.pick("normal", "small"))
    low, high = s.pick((0, 255), (-128, 127), (0, 15), (-7, 7))
    (scale, zero), axis = affine(s, x, low, high)
    return [x, scale, zero, low, high, axis]
