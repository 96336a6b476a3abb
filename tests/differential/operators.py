"""Random calls of every operator, between tensors and numbers."""

import operator

import torch

from calls import broadcast
from values import FLOATS, INTS, T

OPERATORS = {}


def compared(a, b, name):
    return getattr(operator, name)(a, b)


def both(s, floats=8, ints=5, bools=1):
    """Two operands, one of them a tensor at least."""
    shape = s.shape()
    first = s.dtype(floats, ints, bools)
    second = first if s.chance(0.6) else s.dtype(floats, ints, bools)
    kind = s.r.choices(["tensors", "right", "left"], [50, 32, 18])[0]
    a = s.tensor(shape, first)
    if kind == "tensors":
        b = s.tensor(broadcast(s, shape), second)
        return [a, b] if s.chance(0.8) else [b, a]
    return [a, s.number()] if kind == "right" else [s.number(), a]


def numbers(s):
    """Two plain numbers."""
    def one():
        return s.pick(s.r.randint(-6, 12), round(s.r.gauss(0, 3), 2), s.r.randint(0, 3))

    return [one(), one()]


def power(a, b):
    """Python's power, without complex numbers."""
    result = a**b
    if isinstance(result, complex):
        raise ValueError("a complex number")
    return result


def scalar(s, tensors):
    return numbers(s) if s.chance(0.12) else tensors(s)


def binary(name, call=None, tensors=both, ulps=2):
    OPERATORS[name] = (call or getattr(operator, name), lambda s: scalar(s, tensors), ulps)


for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"]:
    binary(name)


def powers(s):
    a, b = both(s)
    if s.chance(0.6) and isinstance(a, T):
        b = s.pick(2, 3, 0, 1, 2.0, 0.5, -1, -2, -0.5, 1.5)
    return [a, b]


binary("pow", power, tensors=powers, ulps=4)


def whole(s):
    return both(s, 1, 10, 3)


for name in ["and_", "or_", "xor"]:
    OPERATORS[name] = (getattr(operator, name), lambda s: whole(s) if not s.chance(0.1) else [s.r.randint(-9, 9), s.r.randint(-9, 9)], 2)


def shifted(s):
    if s.chance(0.1):
        return [s.r.randint(-9, 9), s.r.randint(-1, 70) if s.chance(0.2) else s.r.randint(0, 9)]
    dtype = s.pick(*INTS)
    shape = s.shape()
    x = s.tensor(shape, dtype)
    if s.chance(0.5):
        return [x, s.r.randint(0, 7)]
    by = T(torch.tensor([s.r.randint(0, 7) for _ in range(x.tensor.numel())], dtype=x.tensor.dtype).reshape(shape))
    return [x, by]


OPERATORS["lshift"] = (operator.lshift, shifted, 2)
OPERATORS["rshift"] = (operator.rshift, shifted, 2)
OPERATORS["neg"] = (operator.neg, lambda s: [s.any()] if not s.chance(0.08) else [s.pick(3, -2, 1.5, 0)], 2)
OPERATORS["abs"] = (operator.abs, lambda s: [s.any()] if not s.chance(0.08) else [s.pick(3, -2, -1.5, 0)], 2)
OPERATORS["invert"] = (operator.invert, lambda s: [s.tensor(s.shape(), s.dtype(1, 8, 4))] if not s.chance(0.08) else [s.r.randint(-9, 9)], 2)


def products(s):
    from calls import FUNCTIONS

    return FUNCTIONS["matmul"][1](s)


OPERATORS["matmul"] = (operator.matmul, products, 16)


def index(s):
    x = s.any(1, 4)
    rest, parts, wide = list(x.tensor.shape), [], False
    while rest and len(parts) < 5 and not s.chance(0.2):
        kind = s.r.choices(["int", "slice", "new", "all"], [30, 45, 10, 5])[0]
        if kind == "int":
            n = rest.pop(0)
            if n == 0 and not s.chance(0.1):
                parts.append(slice(None, None, None))
                continue
            parts.append(s.r.randint(-n, n - 1) if n and not s.chance(0.03) else n)
        elif kind == "slice":
            n = rest.pop(0)
            ends = [s.pick(None, s.r.randint(-n - 2, n + 2)) for _ in range(2)]
            parts.append(slice(*ends, s.pick(None, 1, 2, 3)))
        elif kind == "new":
            parts.append(None)
        elif not wide:
            wide = True
            parts.append(Ellipsis)
            rest = rest[s.r.randint(0, len(rest)) :]
    if len(parts) == 1 and s.chance(0.5):
        return [x, parts[0]]
    return [x, parts or [slice(None, None, None)]]


def item(x, parts):
    return x[tuple(parts) if isinstance(parts, list) else parts]


OPERATORS["getitem"] = (item, index, 2)
OPERATORS["getattr"] = (lambda x, name: x.ndim if name == "ndim" else list(x.shape), lambda s: [s.any(), s.pick("shape", "ndim")], 2)


def claims(condition, message):
    assert bool(condition), message


def claim(s):
    return [s.pick(True, False, s.tensor([], "bool"), s.tensor([1], "bool"), s.tensor([2], "bool")), "a claim"]


OPERATORS["_assert"] = (claims, claim, 2)


def same(value, argument, expected):
    assert value is expected or (type(value) is type(expected) and value == expected)


def specialised(s):
    value = s.pick(None, True, False, 1, 2, 1.5, "a", "b")
    return [value, "flag", value if s.chance(0.6) else s.pick(None, True, 1, 1.5, "a")]


OPERATORS["assert_specialized"] = (same, specialised, 2)
