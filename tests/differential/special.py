"""Random calls of `torch.special`: what each function is given, and PyTorch's name for it."""

import torch

from calls import FUNCTIONS, T, broadcast, op
from elementwise import beside

S = torch.special


def one(s):
    """A tensor, often of the numbers at which such functions have poles and limits."""
    x = s.any(style=s.pick(None, "normal", "small", "special"))
    if x.tensor.is_floating_point() and s.chance(0.25):
        return shares(s, x)
    return x


def shares(s, x):
    """Numbers from 0 to 1 in the place of others."""
    draw = torch.rand(x.tensor.shape, generator=torch.Generator().manual_seed(s.r.randrange(2**31)), dtype=torch.float64)
    return T(draw.pow(s.pick(1, 1, 8, 40)).to(x.tensor.dtype))


for name in ["gammaln", "digamma", "ndtr", "ndtri", "log_ndtr", "i0", "i0e", "i1", "i1e", "entr", "erfcx"]:
    # In float32 PyTorch computes some with fewer terms.
    FUNCTIONS[name] = (getattr(S, name), lambda s: [one(s)], 64 if name in ["i1", "i1e", "log_ndtr"] else 4)
FUNCTIONS["lgamma"] = (torch.lgamma, lambda s: [one(s)], 4)


@op("polygamma", lambda n, x: S.polygamma(n, x), 8)
def _(s):
    return [s.pick(0, 1, 1, 2, 3, 5, -1 if s.chance(0.1) else 4), one(s)]




def beside_near(s):
    """As `beside`, with numbers that half precision holds."""
    x, other = beside(s)
    if not isinstance(other, T) and x.tensor.dtype in (torch.float16, torch.bfloat16) and abs(other) > 6e4:
        other = 2.5
    return [x, other]


FUNCTIONS["xlog1py"] = (S.xlog1py, beside_near, 4)


@op("zeta", S.zeta, 8)
def _(s):
    if s.chance(0.3):
        return beside(s)
    shape = s.shape()
    dtype = s.pick("float32", "float64", "float64", "float16" if s.chance(0.1) else "float32")
    x, other = s.tensor(shape, dtype, "normal"), s.tensor(broadcast(s, shape), dtype, s.pick("normal", "small", "special"))
    return [T(x.tensor.abs() * 2 + 1.0), other if s.chance(0.7) else s.pick(1, 2.5, 0.3, -2)]


def held(x):
    """Numbers of some size, and infinities."""
    return torch.where(x.isfinite(), x.clamp(max=1e4), x)


def parts(s):
    """Two tensors of numbers that are not below 0, often alike; some of other numbers."""
    shape = s.shape()
    dtype = s.pick("float32", "float64", "float64", "float32", "bfloat16", "int64" if s.chance(0.1) else "float64")
    style = s.pick("normal", "normal", "wide", "small", "special")
    a, x = s.tensor(shape, dtype, style), s.tensor(broadcast(s, shape), dtype if s.chance(0.9) else s.dtype(), style)
    if not a.tensor.is_floating_point() or not x.tensor.is_floating_point() or s.chance(0.1):
        return [a, x]
    a = T((a.tensor.double().abs() * s.pick(1, 1, 30, 200)).to(a.tensor.dtype))
    near = a.tensor.shape == x.tensor.shape and s.chance(0.4)
    wide = x.tensor.double()
    wide = a.tensor.double() * (1 + wide * s.pick(0.01, 0.1)) if near else wide * s.pick(1, 1, 30)
    # In float32 PyTorch's logarithms of far numbers overflow.
    return [T(held(a.tensor)), T(held(wide.abs().to(x.tensor.dtype)))]


for name in ["gammainc", "gammaincc"]:
    # A part of a logarithm's last digit is many of a power's.
    FUNCTIONS[name] = (getattr(S, name), parts, 512)
