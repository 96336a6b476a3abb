"""Random calls of every function and method: what each is given, and PyTorch's name for it."""

import torch
import torch.nn.functional as F

from values import ALL, DTYPES, FLOATS, INTS, T, plain

# name -> (PyTorch's call, the arguments' generator, units in the last place)
FUNCTIONS = {}
# Names that PyTorch draws random numbers for: name -> range of a call's arguments.
RANDOM = {}


def op(name, torch_call, ulps=2):
    def put(generator):
        FUNCTIONS[name] = (torch_call, generator, ulps)
        return generator

    return put


def unary(*names, call=None):
    for name in names:
        target = call or getattr(torch, name)
        FUNCTIONS[name] = (target, lambda s: [s.any()], 2)


unary("cos", "erf", "exp", "log", "sqrt", "rsqrt", "sin", "tanh", "sigmoid", "square", "reciprocal", "neg", "isnan", "isfinite", "relu")
unary("contiguous", call=lambda x: x.contiguous())
unary("t", call=torch.t)
FUNCTIONS["t"] = (torch.t, lambda s: [s.tensor(s.shape()[: 2 if not s.chance(0.04) else 3], s.dtype())], 2)
for name, call in [("relu6", F.relu6), ("silu", F.silu)]:
    FUNCTIONS[name] = (call, lambda s: [s.tensor(s.shape(), s.dtype(12, 1, 0))], 2)


@op("gelu", lambda x, a: F.gelu(x, approximate=a))
def _(s):
    return [s.tensor(s.shape(), s.dtype(12, 1, 0)), s.pick("none", "tanh") if not s.chance(0.02) else "other"]


@op("elu", lambda x, a: F.elu(x, a))
def _(s):
    return [s.tensor(s.shape(), s.dtype(12, 1, 0)), s.pick(1.0, 0.5, 2.0, -0.3)]


@op("leaky_relu", lambda x, a: F.leaky_relu(x, a))
def _(s):
    return [s.tensor(s.shape(), s.dtype(12, 1, 0)), s.pick(0.01, 0.2, 1.5, -0.3, 0.0)]


@op("clamp", lambda x, a, b: torch.clamp(x, a, b))
def _(s):
    def bound():
        return s.r.choice([None, s.r.gauss(0, 2), float(s.r.randint(-3, 5)), s.r.randint(-3, 9), s.pick(2**53 + 1, -(2**62), 5), float("nan") if s.chance(0.1) else 0.5, float("inf") if s.chance(0.3) else 1.0])

    return [s.any(), bound(), bound()]


@op("type_as", lambda x, other: x.type_as(other))
def _(s):
    # What a float outside of an integer's range becomes is undefined in PyTorch.
    x, other = s.any(style="small"), s.any()
    if not other.tensor.is_floating_point() and x.tensor.is_floating_point():
        x = T(x.tensor.abs())
    return [x, other]


@op("to_device", lambda x, d: x.to(d))
def _(s):
    return [s.any(), "cpu" if s.chance(0.9) else "cuda:100"]


@op("to_dtype", lambda x, d: x.to(d))
def _(s):
    to = s.pick(*ALL)
    if to not in INTS:
        return [s.any(), DTYPES[to]]
    # What a float outside of an integer's range becomes is undefined in PyTorch.
    x = s.any(style="small")
    if to == "uint8" and x.tensor.is_floating_point():
        x = T(x.tensor.abs())
    return [x, DTYPES[to]]


def pair(s, least=0, most=3):
    return [s.r.randint(least, most), s.r.randint(least, most)]


def broadcast(s, shape):
    """A shape that broadcasts with this one."""
    own = [1 if s.chance(0.25) else n for n in shape]
    own = own[s.r.randint(0, len(own)) if s.chance(0.25) else 0 :]
    if own and s.chance(0.03):
        own[-1] += 1
    return own


def two(s, dtypes=None, style=None):
    shape = s.shape()
    first = s.dtype() if dtypes is None else s.pick(*dtypes)
    second = first if s.chance(0.6) else (s.dtype() if dtypes is None else s.pick(*dtypes))
    a, b = s.tensor(shape, first, style), s.tensor(broadcast(s, shape), second, style)
    return [a, b] if s.chance(0.7) else [b, a]


for name in ["maximum", "minimum"]:
    FUNCTIONS[name] = (getattr(torch, name), two, 2)


@op("where", torch.where)
def _(s):
    a, b = two(s)
    shape = broadcast(s, list(max(a.tensor.shape, b.tensor.shape, key=len)))
    condition = s.tensor(shape, "bool" if not s.chance(0.04) else s.pick("uint8", "int64", "float32"))
    first, second = s.pick((a, b), (a, b), (a, s.number()), (s.number(), b), (s.number(), s.number()))
    return [condition, first, second]


@op("masked_fill", lambda x, m, v: x.masked_fill(m, v))
def _(s):
    shape = s.shape()
    value = s.pick(0, 1, -1, 7, 300, 2**53 + 1, True, 0.0, 1.0, -2.0, 2.5, float("inf"), float("-inf"), float("nan"), 300.0, -1.0, 1e9)
    mask = s.tensor(broadcast(s, shape), "bool" if not s.chance(0.04) else "uint8")
    return [s.tensor(shape, s.dtype()), mask, value]


# Reductions


def reduced(s, floats=8, ints=4, bools=1, large=0.03):
    if s.chance(large):
        shape = s.pick([1000], [3000], [4, 1000], [1000, 4], [20000, 2], [2, 20000])
        offset = s.pick(0.0, 1000.0)
        return s.tiled(shape, s.dtype(1, 0, 0), offset)
    return s.tensor(s.shape(), s.dtype(floats, ints, bools))


def reduction(name, call, floats=8, ints=4, bools=1):
    def generator(s):
        x = reduced(s, floats, ints, bools)
        return [x, s.dims(x.tensor.dim()), s.chance(0.5)]

    FUNCTIONS[name] = (call, generator, 16)


reduction("sum", lambda x, d, k: torch.sum(x, dim=d, keepdim=k))
reduction("mean", lambda x, d, k: torch.mean(x, dim=d, keepdim=k), ints=1)
reduction("amax", lambda x, d, k: torch.amax(x, dim=() if d is None else d, keepdim=k))
reduction("amin", lambda x, d, k: torch.amin(x, dim=() if d is None else d, keepdim=k))


def spread(s):
    x = reduced(s, 12, 1, 0)
    return [x, s.dims(x.tensor.dim()), s.chance(0.5), s.chance(0.5)]


FUNCTIONS["var"] = (lambda x, d, u, k: torch.var(x, dim=d, correction=int(u), keepdim=k), spread, 16)
FUNCTIONS["std"] = (lambda x, d, u, k: torch.std(x, dim=d, correction=int(u), keepdim=k), spread, 16)


@op("cumsum", torch.cumsum, 16)
def _(s):
    x = reduced(s)
    return [x, s.dim(x.tensor.dim())]


def along(s):
    x = reduced(s, large=0.0)
    return [x, s.dim(x.tensor.dim()), s.chance(0.5)]


FUNCTIONS["argmax"] = (lambda x, d, k: torch.argmax(x, dim=d, keepdim=k), along, 2)
FUNCTIONS["argmin"] = (lambda x, d, k: torch.argmin(x, dim=d, keepdim=k), along, 2)
FUNCTIONS["max"] = (lambda x, d, k: torch.max(x, d, k), along, 2)
FUNCTIONS["min"] = (lambda x, d, k: torch.min(x, d, k), along, 2)


def distinct(s, shape, dtype):
    """A tensor of different elements, so that only one order is right."""
    import math

    count = math.prod(shape)
    low = 0 if dtype == "uint8" else -count // 2
    values = s.r.sample(range(low, low + 2 * count + 1), count)
    data = torch.tensor(values, dtype=torch.float64)
    if dtype in FLOATS:
        data = data / 2
        if count and s.chance(0.2):
            data[s.r.randrange(count)] = float("nan")
        if count and s.chance(0.2):
            data[s.r.randrange(count)] = s.pick(float("inf"), float("-inf"))
    return T(data.to(DTYPES[dtype]).reshape(shape))


@op("topk", lambda x, k, d, l, o: torch.topk(x, k, d, l, o))
def _(s):
    x = distinct(s, s.shape(numel=90), s.pick(*FLOATS, *INTS))
    d = s.dim(x.tensor.dim())
    rank = x.tensor.dim()
    n = x.tensor.shape[d] if rank and -rank <= d < rank else 1
    k = s.r.randint(0, n) if not s.chance(0.03) else n + 1
    return [x, k, d, s.chance(0.5), True]


for name, call in [("softmax", F.softmax), ("log_softmax", F.log_softmax)]:

    def generator(s):
        x = reduced(s, 12, 1, 0)
        return [x, s.dim(x.tensor.dim())]

    FUNCTIONS[name] = (lambda x, d, call=call: call(x, dim=d), generator, 16)


# Norms


def of(s, shape, like, absent=0.3):
    return None if s.chance(absent) else s.float(shape, s.pick("normal", "small"), like)


@op("layer_norm", lambda x, n, w, b, e: F.layer_norm(x, n, w, b, e), 16)
def _(s):
    dtype = s.dtype(1, 0, 0)
    shape = s.pick([512], [4, 700]) if s.chance(0.03) else s.shape(1, 4)
    x = s.tiled(shape, dtype, s.pick(0.0, 100.0)) if len(shape) and max(shape) >= 512 else s.tensor(shape, dtype, views=True)
    tail = shape[-s.r.randint(1, min(2, len(shape))) :]
    if s.chance(0.03):
        tail = [tail[0] + 1]
    return [x, tail, of(s, tail, dtype), of(s, tail, dtype), s.pick(1e-5, 1e-3, 1e-8)]


@op("rms_norm", lambda x, n, w, e: F.rms_norm(x, n, w, e), 16)
def _(s):
    x, tail, weight, _, eps = FUNCTIONS["layer_norm"][1](s)
    return [x, tail, weight, eps]


@op("group_norm", lambda x, g, w, b, e: F.group_norm(x, g, w, b, e), 16)
def _(s):
    dtype, groups = s.dtype(1, 0, 0), s.r.randint(1, 3)
    channels = groups * s.r.randint(1, 3) + (1 if s.chance(0.03) else 0)
    shape = [s.size(1), channels] + [s.size(1, 4) for _ in range(s.r.randint(0, 2))]
    x = s.tensor(shape, dtype)
    return [x, groups, of(s, [channels], dtype), of(s, [channels], dtype), s.pick(1e-5, 1e-3)]


@op("batch_norm", lambda x, m, v, w, b, t, o, e: F.batch_norm(x, copy(m), copy(v), w, b, t, o, e), 16)
def _(s):
    dtype = s.dtype(1, 0, 0)
    if s.chance(0.03):
        shape, x = [3000, 2], s.tiled([3000, 2], dtype, 100.0)
    else:
        shape = [s.size(1), s.size(1)] + [s.size(1, 4) for _ in range(s.r.randint(0, 3))]
        x = s.tensor(shape, dtype)
    training = s.chance(0.5)
    tracked = s.chance(0.7)
    channels = [shape[1]]
    mean = T(s.dense(channels, dtype, "normal")) if tracked else None
    var = T(s.dense(channels, dtype, "normal").abs() + 0.25) if tracked else None
    return [x, mean, var, of(s, channels, dtype), of(s, channels, dtype), training, s.pick(0.1, 0.5, 1.0), s.pick(1e-5, 1e-3)]


def copy(x):
    return None if x is None else x.clone()


# Losses


def classes(s, shape, count, ignore=-100):
    data = [s.r.randint(0, max(count - 1, 0)) if not s.chance(0.1) else ignore for _ in range(_numel(shape))]
    if data and s.chance(0.02):
        data[0] = count
    return T(torch.tensor(data, dtype=torch.int64).reshape(shape))


def _numel(shape):
    total = 1
    for n in shape:
        total *= n
    return total


def classified(s):
    dtype, count = s.dtype(1, 0, 0), s.r.randint(1, 6)
    if s.chance(0.02):
        count = 1024
    batch = s.pick([], [s.size()], [s.size(1, 3), s.size(1, 3)], [2, 2, 2])
    shape = [count] if not batch else [batch[0], count, *batch[1:]]
    style = s.pick("normal", "normal", "small", "special")
    x = s.float(shape, style, dtype)
    ignore = s.pick(-100, -100, 0, 1)
    target = classes(s, batch, count, ignore)
    weight = None
    if s.chance(0.35):
        weight = T(s.dense([count], dtype, "small").abs())
    return x, target, weight, ignore


def loss_reduction(s):
    return s.pick("mean", "sum", "none") if not s.chance(0.02) else "other"


@op("cross_entropy", lambda x, t, w, i, r, l: F.cross_entropy(x, t, w, ignore_index=i, reduction=r, label_smoothing=l), 16)
def _(s):
    x, target, weight, ignore = classified(s)
    return [x, target, weight, ignore, loss_reduction(s), s.pick(0.0, 0.0, 0.1, 0.5)]


@op("nll_loss", lambda x, t, w, i, r: F.nll_loss(x, t, w, ignore_index=i, reduction=r), 16)
def _(s):
    x, target, weight, ignore = classified(s)
    return [x, target, weight, ignore, loss_reduction(s)]


for name, call in [("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss)]:

    def generator(s):
        a, b = two(s, FLOATS)
        return [a, b, loss_reduction(s)]

    FUNCTIONS[name] = (lambda a, b, r, call=call: call(a, b, reduction=r), generator, 16)


@op("cosine_similarity", lambda a, b, d, e: F.cosine_similarity(a, b, dim=d, eps=e), 16)
def _(s):
    dtype, shape = s.dtype(1, 0, 0), s.shape(1, 4)
    style = s.pick("normal", "small", None)
    a, b = s.tensor(shape, dtype, style), s.tensor(broadcast(s, shape), dtype, style)
    return [a, b, s.dim(len(shape)), s.pick(1e-8, 1e-6)]


# Windows


def image(s, channels, dtype=None, least=1, ints=0):
    dtype = dtype or s.dtype(12, ints, 0)
    shape = [channels, s.size(least, 7), s.size(least, 7)]
    if s.chance(0.8):
        shape = [s.size(1, 3), *shape]
    return s.tensor(shape, dtype, s.pick("normal", "normal", "small", None))


@op("max_pool2d", lambda x, k, s, p, d, c: F.max_pool2d(x, k, s, p, d, c))
def _(s):
    k = pair(s, 1)
    return [image(s, s.size(1, 3), least=3, ints=1), k, pair(s, 1), half(s, k), pair(s, 1, 2), s.chance(0.3)]


@op("avg_pool2d", lambda x, k, s, p, c, i: F.avg_pool2d(x, k, s, p, c, i), 16)
def _(s):
    k = pair(s, 1)
    return [image(s, s.size(1, 3), least=2, ints=1), k, pair(s, 1), half(s, k), s.chance(0.3), s.chance(0.6)]


def half(s, kernel):
    """A padding: at most half of the window, but for a few."""
    return pair(s, 0, 1) if s.chance(0.04) else [s.r.randint(0, k // 2) for k in kernel]


@op("adaptive_avg_pool2d", lambda x, o: F.adaptive_avg_pool2d(x, o), 16)
def _(s):
    return [image(s, s.size(1, 3), ints=1), pair(s, 1, 5)]


def channels(s):
    groups = s.pick(1, 1, 1, 2, 3)
    return groups, groups * s.r.randint(1, 3), groups * s.r.randint(1, 3)


@op("conv2d", lambda x, w, b, s, p, d, g: F.conv2d(x, w, b, s, p, d, g), 16)
def _(s):
    groups, inner, outer = channels(s)
    x = image(s, inner, least=3)
    dtype = _name(x)
    weight = s.float([outer, inner // groups + (1 if s.chance(0.02) else 0), *pair(s, 1)], "normal", dtype)
    return [x, weight, of(s, [outer], dtype), pair(s, 1), pair(s, 0, 2), pair(s, 1, 2), groups]


@op("conv1d", lambda x, w, b, s, p, d, g: F.conv1d(x, w, b, s, p, d, g), 16)
def _(s):
    groups, inner, outer = channels(s)
    dtype = s.dtype(1, 0, 0)
    x = s.float([s.size(1, 3), inner, s.size(1, 9)][0 if s.chance(0.8) else 1 :], "normal", dtype)
    weight = s.float([outer, inner // groups, s.r.randint(1, 3)], "normal", dtype)
    return [x, weight, of(s, [outer], dtype), s.r.randint(1, 3), s.r.randint(0, 2), s.r.randint(1, 2), groups]


@op("conv_transpose2d", lambda x, w, b, s, p, o, g, d: F.conv_transpose2d(x, w, b, s, p, o, g, d), 16)
def _(s):
    groups, inner, outer = channels(s)
    x = image(s, inner)
    dtype = _name(x)
    weight = s.float([inner, outer // groups, *pair(s, 1)], "normal", dtype)
    stride, dilation = pair(s, 1), pair(s, 1, 2)
    more = [s.r.randint(0, max(a, b) - (0 if s.chance(0.03) else 1)) for a, b in zip(stride, dilation)]
    return [x, weight, of(s, [outer], dtype), stride, pair(s, 0, 1), more, groups, dilation]


def _name(x):
    return str(x.tensor.dtype).removeprefix("torch.")


def interpolated(x, size, factor, mode, align, recompute=None, antialias=False):
    return F.interpolate(
        x, size=size, scale_factor=factor, mode=mode, align_corners=align, recompute_scale_factor=recompute, antialias=antialias
    )


# The modes, and the numbers of dims that they are for.
MODES = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
}


def pictures(s, mode):
    """Images for a mode, rarely of another number of dims or type."""
    rank = s.pick(*MODES[mode]) if not s.chance(0.04) else s.pick(2, 3, 4, 5, 6)
    shape = [s.size(1, 2), s.size(1, 2), *(s.size(1, 5 if rank < 5 else 3) for _ in range(rank - 2))][:rank]
    if s.chance(0.03) and mode != "area":
        return s.tensor(shape, s.pick("int64", "int32", "bool"), "small"), rank
    # Its kernel for more channels than four, or a view, gives what memory holds.
    if s.chance(0.1) and mode not in ("linear", "trilinear", "area"):
        return s.tensor(shape, "uint8", views=False), rank
    return s.float(shape, s.pick("normal", "small")), rank


def aligned(s, mode):
    between = mode in ("linear", "bilinear", "bicubic", "trilinear")
    return s.pick(None, True, False) if between or s.chance(0.03) else None


def resized(s, rank, sized):
    """A size, or a factor."""
    each = max(rank - 2, 1) + (1 if s.chance(0.03) else 0)
    if sized:
        return [s.size(1, 7) for _ in range(each)] if s.chance(0.7) else [s.size(1, 7)] * each
    factors = (2.0, 1.5, 0.5, 3.0, 0.7, 1.3)
    return [s.pick(*factors) for _ in range(each)] if s.chance(0.4) else s.pick(*factors)


@op("interpolate", interpolated, 16)
def _(s):
    mode = s.pick(*MODES)
    x, rank = pictures(s, mode)
    sized = s.chance(0.5)
    value = resized(s, rank, sized)
    return [x, value if sized else None, None if sized else value, mode, aligned(s, mode)]


@op("interpolate_with", interpolated, 16)
def _(s):
    antialias = s.chance(0.6)
    mode = s.pick("bilinear", "bicubic", "lanczos") if antialias else s.pick(*MODES)
    sized = s.chance(0.5)
    if antialias:
        # Of a result of one column, PyTorch 2.15 gives the first row in every row.
        dtype = s.pick("float32", "float64") if s.chance(0.95) else s.pick("float16", "int64")
        x, rank = s.tensor([1, s.size(1, 2), s.size(1, 7), s.size(4, 7)], dtype, "small"), 4
        value = [s.size(1, 9), s.size(2, 9)] if sized else s.pick(0.5, 0.7, 1.3, [2.0, 0.5])
        if dtype in ("float16", "int64"):
            # What keeps its size is copied, whatever its type.
            value, sized = 0.5, False
    else:
        x, rank = pictures(s, mode)
        value = resized(s, rank, sized)
    recompute = s.pick(None, False, True) if not sized or s.chance(0.05) else None
    align = aligned(s, mode) if mode != "lanczos" else None
    return [x, value if sized else None, None if sized else value, mode, align, recompute, antialias]


# Products


@op("matmul", torch.matmul, 16)
def _(s):
    a, b, c = s.size(), s.size(), s.size()
    dtype = s.dtype(8, 3, 0)
    left = [b] if s.chance(0.15) else [a, b]
    right = [b + (1 if s.chance(0.03) else 0)] if s.chance(0.15) else [b, c]
    batch = [s.size() for _ in range(s.r.randint(0, 2))]
    if len(left) > 1 and s.chance(0.5):
        left = broadcast(s, batch) + left
    if len(right) > 1 and s.chance(0.5):
        right = batch + right
    other = dtype if not s.chance(0.04) else s.dtype()
    style = s.pick("normal", "normal", "small", None)
    return [s.tensor(left, dtype, style), s.tensor(right, other, style)]


@op("linear", F.linear, 16)
def _(s):
    inner, outer, dtype = s.size(), s.size(1), s.dtype(12, 1, 0)
    x = s.tensor([*s.shape(0, 3)[:3], inner], dtype, s.pick("normal", "small", None))
    weight = s.tensor([outer, inner + (1 if s.chance(0.03) else 0)], dtype, "small" if dtype in INTS else "normal")
    bias = None if s.chance(0.4) else s.tensor([outer], dtype, "small" if dtype in INTS else "normal")
    return [x, weight, bias]


EQUATIONS = [
    ("ij,jk->ik", [(0, 1), (1, 2)]),
    ("ij,jk", [(0, 1), (1, 2)]),
    ("bij,bjk->bik", [(3, 0, 1), (3, 1, 2)]),
    ("bhqd,bhkd->bhqk", [(3, 4, 0, 1), (3, 4, 2, 1)]),
    ("i,j->ij", [(0,), (1,)]),
    ("ij->ji", [(0, 1)]),
    ("ij->", [(0, 1)]),
    ("ij->j", [(0, 1)]),
    ("i,i->", [(0,), (0,)]),
    ("ijk,k->ij", [(0, 1, 2), (2,)]),
    ("ij,ij->i", [(0, 1), (0, 1)]),
]


@op("einsum", lambda e, xs: torch.einsum(e, *xs), 16)
def _(s):
    equation, operands = s.r.choice(EQUATIONS)
    sizes, dtype = [s.size(0, 4) for _ in range(5)], s.dtype(12, 1, 0)
    style = "small" if dtype in INTS else s.pick("normal", "small")
    return [equation, [s.tensor([sizes[n] for n in names], dtype, style) for names in operands]]


def attention(q, k, v, m, p, c, scale, g):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m, dropout_p=p, is_causal=c, scale=scale, enable_gqa=g)


@op("scaled_dot_product_attention", attention, 16)
def _(s):
    dtype = s.dtype(1, 0, 0)
    batch, heads, length, keys, width = s.size(1, 2), s.r.randint(1, 3), s.size(1), s.size(1), s.size(1)
    grouped = s.chance(0.15)
    q = s.float([batch, heads * (2 if grouped else 1), length, width], "normal", dtype)
    k = s.float([batch, heads, keys, width], "normal", dtype)
    v = s.float([batch, heads, keys, s.size(1)], "normal", dtype)
    mask, causal = None, s.chance(0.25)
    if not causal and s.chance(0.5):
        shape = s.pick([length, keys], [batch, 1, length, keys])
        mask = s.tensor(shape, "bool") if s.chance(0.5) else s.float(shape, "normal", dtype)
    return [q, k, v, mask, 0.0, causal, s.pick(None, None, 0.5), grouped]


def masked(scores, mask):
    return scores.masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else scores + mask


@op("mask_scores", masked)
def _(s):
    shape, dtype = s.shape(2, 4), s.dtype(1, 0, 0)
    to = broadcast(s, shape)
    return [s.float(shape, None, dtype), s.tensor(to, "bool") if s.chance(0.5) else s.float(to, None, dtype)]


@op("lstm", lambda x, h, c, p, *rest: lstm(x, h, c, p, *rest), 16)
def _(s):
    dtype = s.dtype(1, 0, 0)
    inner, hidden, layers, biases = s.size(1, 4), s.size(1, 3), s.r.randint(1, 2), s.chance(0.7)
    both, first = s.chance(0.4), s.chance(0.5)
    ways = 2 if both else 1
    params = []
    for layer in range(layers):
        for _ in range(ways):
            width = inner if layer == 0 else hidden * ways
            shapes = [[4 * hidden, width], [4 * hidden, hidden]] + ([[4 * hidden]] * 2 if biases else [])
            params += [s.float(shape, "normal", dtype) for shape in shapes]
    batch, length = s.size(1, 3), s.size(1, 4)
    x = s.float([batch, length, inner] if first else [length, batch, inner], "normal", dtype)
    states = [None, None]
    if s.chance(0.6):
        states = [s.float([layers * ways, batch, hidden], "normal", dtype) for _ in range(2)]
    return [x, *states, params, biases, layers, 0.0, s.chance(0.5), both, first]


def lstm(x, h, c, params, biases, layers, dropout, train, both, first):
    if h is None:
        batch = x.shape[0 if first else 1]
        hidden = params[1].shape[1]
        h = c = torch.zeros(layers * (2 if both else 1), batch, hidden, dtype=x.dtype)
    return torch.lstm(x, (h, c), params, biases, layers, dropout, train, both, first)


# Shapes


def sizes_of(s, shape):
    """Other sizes for as many elements, sometimes with -1."""
    count = _numel(shape)
    if s.chance(0.04):
        return [count + 1]
    sizes, left = [], count
    while left > 1 and len(sizes) < 4:
        divisors = [n for n in range(1, left + 1) if left % n == 0]
        n = s.r.choice(divisors)
        sizes.append(n)
        left //= n
    sizes.append(left)
    s.r.shuffle(sizes)
    if count > 0 and s.chance(0.4):
        sizes[s.r.randrange(len(sizes))] = -1
    elif count == 0:
        sizes = s.pick([0], [0, 3], [2, 0], [-1, 0], [-1])
    return sizes


@op("reshape", lambda x, z: x.reshape(z))
def _(s):
    x = s.any()
    return [x, sizes_of(s, x.tensor.shape)]


@op("view", lambda x, z: x.view(z))
def _(s):
    x = s.any()
    return [x, sizes_of(s, x.tensor.shape)]


@op("expand", lambda x, z: x.expand(z))
def _(s):
    to = s.shape()
    shape = [1 if s.chance(0.5) else n for n in to][s.r.randint(0, len(to)) if s.chance(0.3) else 0 :]
    sizes = [-1 if n == m and i >= len(to) - len(shape) and s.chance(0.3) else n for i, (n, m) in enumerate(zip(to, [0] * (len(to) - len(shape)) + shape))]
    if s.chance(0.03) and sizes:
        sizes[-1] = 9
    return [s.tensor(shape, s.dtype()), sizes]


@op("flatten", lambda x, a, b: torch.flatten(x, a, b))
def _(s):
    x = s.any()
    a, b = sorted([s.dim(x.tensor.dim()), s.dim(x.tensor.dim())], key=lambda d: d % max(x.tensor.dim(), 1))
    return [x, a, b]


@op("permute", lambda x, d: x.permute(d))
def _(s):
    x = s.any()
    rank = x.tensor.dim()
    dims = s.r.sample(range(rank), rank)
    dims = [d - rank if s.chance(0.3) else d for d in dims]
    if dims and s.chance(0.03):
        dims[0] = dims[-1]
    return [x, dims]


@op("transpose", torch.transpose)
def _(s):
    x = s.any()
    return [x, s.dim(x.tensor.dim()), s.dim(x.tensor.dim())]


@op("squeeze", torch.squeeze)
def _(s):
    x = s.any()
    return [x, s.dim(x.tensor.dim())]


@op("unsqueeze", torch.unsqueeze)
def _(s):
    x = s.any(0, 4)
    return [x, s.dim(x.tensor.dim() + 1)]


@op("size", lambda x, d: x.size(d))
def _(s):
    x = s.any()
    return [x, s.dim(x.tensor.dim())]


@op("split", lambda x, n, d: torch.split(x, n, d))
def _(s):
    x = s.any()
    return [x, s.r.randint(0 if s.chance(0.05) else 1, 5), s.dim(x.tensor.dim())]


@op("chunk", lambda x, n, d: torch.chunk(x, n, d))
def _(s):
    x = s.any()
    return [x, s.r.randint(0 if s.chance(0.05) else 1, 5), s.dim(x.tensor.dim())]


@op("split_with_sizes", lambda x, n, d: torch.split_with_sizes(x, n, d))
def _(s):
    x = s.any(1)
    d = s.dim(x.tensor.dim())
    rank = x.tensor.dim()
    left = x.tensor.shape[d] if -rank <= d < rank else 2
    sizes = []
    while left > 0:
        n = s.r.randint(0, left)
        sizes.append(n)
        left -= n
    if s.chance(0.04):
        sizes.append(1)
    return [x, sizes, d]


@op("unbind", torch.unbind)
def _(s):
    x = s.any()
    return [x, s.dim(x.tensor.dim())]


@op("cat", lambda xs, d: torch.cat(xs, d))
def _(s):
    shape = s.shape(0 if s.chance(0.02) else 1)
    d = s.dim(len(shape))
    at = d % len(shape) if shape else 0
    dtype, xs = s.dtype(), []
    for _ in range(s.r.randint(1, 4)):
        own = list(shape)
        if own:
            own[at] = s.size()
        if own and s.chance(0.02):
            own[0] += 1
        if s.chance(0.02):
            own = [0]
        xs.append(s.tensor(own, dtype if s.chance(0.8) else s.dtype()))
    return [xs, d]


@op("stack", lambda xs, d: torch.stack(xs, d))
def _(s):
    shape, dtype = s.shape(0, 4), s.dtype()
    d = s.dim(len(shape) + 1)
    count = s.r.randint(1, 4)
    xs = [s.tensor(shape if not s.chance(0.01) else [*shape, 2], dtype if s.chance(0.9) else s.dtype()) for _ in range(count)]
    return [xs, d]


for name in ["tril", "triu"]:

    def generator(s):
        return [s.any(2 if not s.chance(0.03) else 1, 4), s.r.randint(-3, 3)]

    FUNCTIONS[name] = (getattr(torch, name), generator, 2)


# Selection


def places(s, shape, count, dtype="int64", out=0.02):
    data = [s.r.randint(0, max(count - 1, 0)) for _ in range(_numel(shape))]
    if data and (s.chance(out) or count == 0):
        data[s.r.randrange(len(data))] = s.pick(count, -1)
    return T(torch.tensor(data, dtype=DTYPES[dtype]).reshape(shape))


@op("gather", torch.gather)
def _(s):
    x = s.any()
    shape = list(x.tensor.shape)
    d = s.dim(len(shape))
    own = [s.r.randint(0, n) if s.chance(0.3) else n for n in shape]
    if own and s.chance(0.02):
        own[0] += 1
    count = shape[d] if shape and -len(shape) <= d < len(shape) else 1
    return [x, d, places(s, own, count)]


@op("index_select", torch.index_select)
def _(s):
    x = s.any()
    shape = list(x.tensor.shape)
    d = s.dim(len(shape))
    count = shape[d] if shape and -len(shape) <= d < len(shape) else 1
    return [x, d, places(s, [s.size()] if s.chance(0.95) else [], count, s.pick("int64", "int64", "int32"))]


@op("embedding", lambda i, w, p: F.embedding(i, w, padding_idx=p))
def _(s):
    count = s.size(1)
    weight = s.float([count, s.size(0, 4)])
    padding = None if s.chance(0.7) else s.r.randint(0, count - (0 if s.chance(0.2) else 1))
    return [places(s, s.shape(0, 3), count, s.pick("int64", "int64", "int32")), weight, padding]


@op("one_hot", lambda x, n: F.one_hot(x, n))
def _(s):
    count = s.size(1)
    dtype = "int64" if not s.chance(0.03) else s.pick("int32", "float32")
    return [places(s, s.shape(0, 3), count, dtype), s.pick(-1, count, count + 2)]


# Dropout


@op("dropout", lambda x, p, t: F.dropout(x, p, t))
def _(s):
    x = s.tensor(s.shape(), s.dtype(1, 0, 0), s.pick("normal", "small"))
    return [x, s.pick(0.0, 1.0, 0.5, 0.3, 1.5 if s.chance(0.1) else 0.2), s.chance(0.6)]


def dropped(args):
    x, p, training = plain(args[0]), args[1], args[2]
    if not training or p in (0.0, 1.0):
        return None
    top = (x.double().abs().max().item() if x.numel() else 0.0) / (1 - p) * 1.01
    return -top, top


RANDOM["dropout"] = dropped


# The generators of the other files go into the same table.
import structure  # noqa: E402, F401
import windows  # noqa: E402, F401
