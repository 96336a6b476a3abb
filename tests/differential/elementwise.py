"""Random calls of functions of elements, activations and what makes tensors: what each is given, and PyTorch's name."""

import torch
import torch.nn.functional as F

from calls import FUNCTIONS, RANDOM, broadcast, op, two, unary
from values import ALL, DTYPES, FLOATS, INTS, T

unary("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "log2", "log10", "exp2")
unary("erfc", "erfinv", "sinc", "floor", "ceil", "trunc", "fix", "frac", "sign", "sgn", "absolute", "positive", "detach", "deg2rad", "rad2deg")
unary("isinf", "isposinf", "isneginf", "signbit", "bitwise_not", "logical_not")


@op("round", lambda x, d: torch.round(x, decimals=d) if d else torch.round(x))
def _(s):
    x = s.any()
    return [x, s.pick(0, 0, 1, 2, -1)]


@op("logit", lambda x, e: torch.logit(x, e))
def _(s):
    x = s.any()
    if x.tensor.is_floating_point() and s.chance(0.6):
        x = T(torch.rand(x.tensor.shape, generator=torch.Generator().manual_seed(s.r.randrange(2**31))).to(x.tensor.dtype))
    return [x, s.pick(None, None, 1e-6, 0.1, 0.25)]


@op("nan_to_num", lambda x, n, p, m: torch.nan_to_num(x, n, p, m))
def _(s):
    # What stands for infinities unless given is of the type, and the judge is of another.
    if s.chance(0.3):
        return [s.any(style=s.pick("normal", "small")), s.pick(None, 0.5), None, None]
    return [s.any(style=s.pick(None, "special")), s.pick(None, 0.5, -7.0), s.pick(9.0, 1e4), s.pick(-9.0, -1e4)]


for name in ["atan2", "hypot", "logaddexp", "logaddexp2", "fmax", "fmin", "logical_and", "logical_or", "logical_xor"]:
    FUNCTIONS[name] = (getattr(torch, name), two, 2)


def beside(s):
    """A tensor and a tensor, or a number."""
    if s.chance(0.6):
        return two(s)
    x = s.any()
    return [x, s.number()]


def divided(s):
    """What PyTorch divides: the least integer by -1 ends its process."""
    if s.chance(0.6):
        return two(s, style="small")
    x = s.any(style="small")
    return [x, s.pick(s.r.randint(-4, 9), 2.5, -0.7, 300, True if s.chance(0.2) else 3)]


for name in ["fmod", "remainder", "floor_divide"]:
    FUNCTIONS[name] = (getattr(torch, name), divided, 2)
for name in ["gcd", "lcm"]:
    FUNCTIONS[name] = (getattr(torch, name), lambda s: two(s, [*INTS, *INTS, "bool", "float32"], "small"), 2)
for name in ["copysign", "xlogy", "bitwise_and", "bitwise_or", "bitwise_xor"]:
    FUNCTIONS[name] = (getattr(torch, name), beside, 2)


def shifted(s):
    shape = s.shape()
    x = s.tensor(shape, s.pick(*INTS, "bool" if s.chance(0.1) else "int64", "float32" if s.chance(0.1) else "int32"))
    bits = 8 * x.tensor.element_size() - 1
    by = [s.r.randint(0, bits) for _ in range(torch.Size(shape).numel())]
    if s.chance(0.3):
        return [x, s.r.randint(0, min(bits, 30))]
    like = x.tensor.dtype if x.tensor.dtype in [DTYPES[name] for name in INTS] else torch.int64
    return [x, T(torch.tensor(by, dtype=like).reshape(shape))]


FUNCTIONS["bitwise_left_shift"] = (torch.bitwise_left_shift, shifted, 2)
FUNCTIONS["bitwise_right_shift"] = (torch.bitwise_right_shift, shifted, 2)


@op("heaviside", torch.heaviside)
def _(s):
    shape, dtype = s.shape(), s.dtype()
    style = s.pick(None, "small")
    return [s.tensor(shape, dtype, style), s.tensor(broadcast(s, shape), dtype if not s.chance(0.04) else s.dtype())]


@op("lerp", torch.lerp)
def _(s):
    shape, dtype = s.shape(), s.dtype(12, 1, 0)
    end = s.tensor(broadcast(s, shape), dtype if not s.chance(0.03) else s.dtype())
    weight = s.tensor(broadcast(s, shape), dtype, "normal") if s.chance(0.5) else s.pick(0.25, 0.5, 0.75, 2.0, -1.0, 2)
    return [s.tensor(shape, dtype), end, weight]


def weighted(s):
    shape, dtype = s.shape(), s.dtype()
    others = [s.tensor(broadcast(s, shape), dtype if s.chance(0.8) else s.dtype()) for _ in range(2)]
    whole = dtype not in FLOATS
    return [s.tensor(shape, dtype), *others, s.pick(1, 2, -1) if whole or s.chance(0.3) else s.pick(0.5, -2.0, 1.5)]


FUNCTIONS["addcmul"] = (lambda x, a, b, v: torch.addcmul(x, a, b, value=v), weighted, 4)
FUNCTIONS["addcdiv"] = (lambda x, a, b, v: torch.addcdiv(x, a, b, value=v), weighted, 4)
FUNCTIONS["clip"] = (torch.clip, FUNCTIONS["clamp"][1], 2)


def near(s):
    shape, dtype = s.shape(), s.dtype()
    style = s.pick(None, "small", "special")
    x = s.tensor(shape, dtype, style)
    if s.chance(0.5):
        other = s.tensor(broadcast(s, shape), dtype if not s.chance(0.05) else s.dtype(), style)
    elif x.tensor.is_floating_point():
        other = T(x.tensor * s.pick(1.0, 1.0 + 1e-6, 1.0 + 1e-3))
    else:
        other = T(x.tensor.clone())
    return [x, other, s.pick(1e-5, 0.0, 0.1, -1.0 if s.chance(0.1) else 1e-3), s.pick(1e-8, 0.0, 0.5), s.chance(0.4)]


FUNCTIONS["isclose"] = (torch.isclose, near, 2)
FUNCTIONS["allclose"] = (torch.allclose, near, 2)


@op("equal", torch.equal)
def _(s):
    x, other, *_ = near(s)
    return [x, other]


# Activations


def activation(name, *options, call=None):
    """Of a tensor and one of each options' numbers."""
    call = call or getattr(F, name)
    FUNCTIONS[name] = (call, lambda s: [s.tensor(s.shape(), s.dtype(12, 1, 0)), *(s.pick(*of) for of in options)], 2)


for name in ["hardswish", "hardsigmoid", "mish", "selu", "logsigmoid", "tanhshrink", "softsign"]:
    activation(name)
activation("celu", (1.0, 0.5, -0.3, 2.0, 0.0), call=lambda x, a: F.celu(x, a))
activation("hardshrink", (0.5, 0.0, 1.5))
activation("softshrink", (0.5, 0.0, 1.5, -1.0))
activation("hardtanh", (-1.0, -2, 0.5, -0.3), (1.0, 2, 0.7), call=lambda x, a, b: F.hardtanh(x, a, b))
activation("threshold", (0.0, 0.5, 1, -1.0), (0.0, 5, -2.5))
activation("softplus", (1.0, 1.0, 0.5, 2.0), (20.0, 20.0, 1.0, 30.0))
activation("softmin", call=lambda x, d: F.softmin(x, dim=d))
FUNCTIONS["softmin"] = (FUNCTIONS["softmin"][0], FUNCTIONS["softmax"][1], 16)


@op("prelu", F.prelu)
def _(s):
    shape, dtype = s.shape(), s.dtype(12, 1, 0)
    channels = shape[1] if len(shape) > 1 else 1
    weight = s.pick([], [1], [channels], [channels], [channels + 1] if s.chance(0.1) else [channels])
    return [s.tensor(shape, dtype), s.tensor(weight, dtype if not s.chance(0.03) else s.dtype())]


@op("glu", F.glu)
def _(s):
    x = s.tensor(s.shape(0 if s.chance(0.05) else 1), s.dtype(12, 1, 0))
    rank = x.tensor.dim()
    even = [d for d in range(rank) if x.tensor.shape[d] % 2 == 0]
    return [x, s.pick(*even) if even and s.chance(0.9) else s.dim(rank)]


@op("rrelu", lambda x, a, b, t: F.rrelu(x, a, b, t))
def _(s):
    x = s.tensor(s.shape(), s.dtype(12, 1, 0) if s.chance(0.1) else s.dtype(1, 0, 0), s.pick("normal", "small"))
    training = x.tensor.dtype in [torch.float32, torch.float64] and s.chance(0.4)
    return [x, *s.pick((0.125, 0.5), (0.25, 0.25), (0.5, 0.125) if s.chance(0.2) else (0.1, 0.3)), training]


def sloped(args):
    x, training = args[0].tensor, args[3]
    top = (x.double().abs().max().item() if x.numel() else 0.0) * 1.01
    return (-top, top) if training else None


RANDOM["rrelu"] = sloped

# What makes tensors


def dtype_or_none(s, names=ALL):
    return None if s.chance(0.4) else DTYPES[s.pick(*names)]


def sizes(s):
    return s.shape() if not s.chance(0.03) else [2, -1]


for name in ["zeros", "ones"]:
    new = "new_" + name
    FUNCTIONS[name] = (lambda n, d, name=name: getattr(torch, name)(n, dtype=d), lambda s: [sizes(s), dtype_or_none(s)], 2)
    FUNCTIONS[name + "_like"] = (lambda x, d, name=name: getattr(torch, name + "_like")(x, dtype=d), lambda s: [s.any(), dtype_or_none(s)], 2)
    FUNCTIONS[new] = (lambda x, n, d, new=new: getattr(x, new)(n, dtype=d), lambda s: [s.any(), sizes(s), dtype_or_none(s)], 2)

# Elements that are to be written over are zeros here.
FUNCTIONS["empty"] = FUNCTIONS["zeros"]
FUNCTIONS["empty_like"] = FUNCTIONS["zeros_like"]
FUNCTIONS["new_empty"] = FUNCTIONS["new_zeros"]


def filling(s):
    return s.number() if s.chance(0.5) else s.pick(0, 1, 7, 2.5, True, -1, 1e9, 300)


FUNCTIONS["full"] = (lambda n, v, d: torch.full(n, v, dtype=d), lambda s: [sizes(s), filling(s), dtype_or_none(s)], 2)
FUNCTIONS["full_like"] = (lambda x, v, d: torch.full_like(x, v, dtype=d), lambda s: [s.any(), filling(s), dtype_or_none(s)], 2)
FUNCTIONS["new_full"] = (lambda x, n, v, d: x.new_full(n, v, dtype=d), lambda s: [s.any(), sizes(s), filling(s), dtype_or_none(s)], 2)


@op("arange", lambda a, b, c, d: torch.arange(a, b, c, dtype=d))
def _(s):
    step = s.r.choice([1, 1, 2, 3, -1, -2]) if not s.chance(0.03) else 0
    a, b = s.r.randint(-9, 9), s.r.randint(-9, 30)
    if (b < a) != (step < 0) and not s.chance(0.04):
        a, b = b, a
    return [a, b, step, dtype_or_none(s)]


def end(s):
    return s.r.randint(-9, 9) if s.chance(0.5) else s.pick(0.5, -2.25, 3.5, 7.75, 0.1)


@op("linspace", lambda a, b, n, d: torch.linspace(a, b, n, dtype=d))
def _(s):
    a, b, dtype = end(s), end(s), dtype_or_none(s)
    if dtype == torch.uint8:
        a, b = abs(a), abs(b)
    # Truth values are refused, which PyTorch does only where there are several.
    least = 2 if dtype == torch.bool else -1 if s.chance(0.05) else 0
    return [a, b, s.r.randint(least, 9), dtype]


@op("logspace", lambda a, b, n, base, d: torch.logspace(a, b, n, base, dtype=d))
def _(s):
    return [s.r.randint(0, 2), s.r.randint(0, 4), s.r.randint(-1 if s.chance(0.05) else 0, 9), s.pick(10.0, 2.0), dtype_or_none(s, [*FLOATS, "bool"] if s.chance(0.1) else FLOATS)]


@op("eye", lambda n, m, d: torch.eye(n, n if m is None else m, dtype=d))
def _(s):
    return [s.r.randint(-1 if s.chance(0.05) else 0, 6), None if s.chance(0.4) else s.r.randint(0, 6), dtype_or_none(s)]


for name in ["tril_indices", "triu_indices"]:

    def generator(s):
        return [s.r.randint(-1 if s.chance(0.05) else 0, 6), s.r.randint(0, 6), s.r.randint(-7, 7)]

    FUNCTIONS[name] = (getattr(torch, name), generator, 2)

for name in ["rand", "randn"]:
    some = lambda s: dtype_or_none(s, FLOATS if not s.chance(0.05) else INTS)  # noqa: E731
    FUNCTIONS[name] = (lambda n, d, name=name: getattr(torch, name)(n, dtype=d), lambda s, some=some: [[n + 1 for n in s.shape()] if s.chance(0.9) else [2, -1], some(s)], 2)
    FUNCTIONS[name + "_like"] = (
        lambda x, d, name=name: getattr(torch, name + "_like")(x, dtype=d),
        lambda s, some=some: [s.any(dtype=s.dtype(12, 1, 0)), some(s)],
        2,
    )
for name, edge in [("rand", 1.0), ("randn", 40.0)]:
    RANDOM[name] = RANDOM[name + "_like"] = lambda args, edge=edge: (0.0 if edge == 1.0 else -edge, edge)

FUNCTIONS["normal"] = (lambda m, d, n, t: torch.normal(m, d, n, dtype=t), lambda s: [s.pick(0.0, 3.0), s.pick(1.0, 0.0, 2.0, -1.0 if s.chance(0.1) else 0.5), sizes(s), dtype_or_none(s, FLOATS)], 2)
RANDOM["normal"] = lambda args: (args[0] - 40 * args[1], args[0] + 40 * args[1])


def drawn(s):
    low = s.r.randint(-5, 5)
    return [low, low + (s.r.randint(1, 9) if not s.chance(0.04) else 0)]


def integer_type(s):
    return dtype_or_none(s, ["int64", "int32", "int16", "float32", "float64", "uint8"])


FUNCTIONS["randint"] = (lambda a, b, n, d: torch.randint(a, b, n, dtype=d), lambda s: [*drawn(s), sizes(s), integer_type(s)], 2)
FUNCTIONS["randint_like"] = (lambda x, a, b, d: torch.randint_like(x, a, b, dtype=d), lambda s: [s.any(dtype=s.pick("float32", "int64", "int32")), *drawn(s), integer_type(s)], 2)
RANDOM["randint"] = lambda args: (args[0], args[1] - 1)
RANDOM["randint_like"] = lambda args: (args[1], args[2] - 1)
FUNCTIONS["randperm"] = (lambda n, d: torch.randperm(n, dtype=d), lambda s: [s.r.randint(-1 if s.chance(0.05) else 0, 9), integer_type(s)], 2)
RANDOM["randperm"] = lambda args: (0, max(args[0] - 1, 0))


@op("bernoulli", torch.bernoulli)
def _(s):
    x = s.tensor(s.shape(), s.dtype(1, 0, 0), "normal")
    p = x.tensor.abs() % 1.0
    if s.chance(0.04):
        p = p + 1.5
    return [T(p if not s.chance(0.04) else p.long())]


RANDOM["bernoulli"] = lambda args: (0.0, 1.0)


@op("multinomial", torch.multinomial)
def _(s):
    shape = [s.size(1), s.size(1)][s.r.randint(0, 1) :] if not s.chance(0.03) else [2, 2, 2]
    x = s.tensor(shape, s.dtype(1, 0, 0), "normal").tensor.abs()
    if s.chance(0.05):
        x = s.pick(-x, x * 0.0, x.long())
    replacement = s.chance(0.5)
    most = 7 if replacement or s.chance(0.05) else shape[-1]
    return [T(x), s.r.randint(0 if s.chance(0.04) else 1, most), replacement]


RANDOM["multinomial"] = lambda args: (0, args[0].tensor.shape[-1] - 1)
