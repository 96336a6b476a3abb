"""Random calls of what rearranges, picks and multiplies: its generators, beside those of `calls`."""

import torch
import torch.nn.functional as F

from calls import _numel, broadcast, distinct, op, places, two
from values import ALL, DTYPES, FLOATS, INTS, T


def rank_of(x):
    return x.tensor.dim()


def size_at(x, d, other=1):
    shape = x.tensor.shape
    return shape[d] if shape and -len(shape) <= d < len(shape) else other


def named_dims(s, rank):
    """Some of the dims, each once but for a few."""
    chosen = s.r.sample(range(rank), s.r.randint(0, rank)) if rank else []
    chosen = [d - rank if s.chance(0.3) else d for d in chosen]
    if chosen and s.chance(0.02):
        chosen.append(chosen[0])
    return chosen


# Shapes


@op("pad", lambda x, p, m, v: F.pad(x, p, m, v))
def _(s):
    mode = s.pick("constant", "constant", "reflect", "replicate", "circular") if not s.chance(0.01) else "other"
    if mode == "constant":
        x = s.any()
        count = s.r.randint(0, rank_of(x))
        value = s.pick(None, 0.0, 1.0, -2.0, 3, True) if x.tensor.dtype != torch.uint8 else s.pick(None, 1, 3.0)
        if x.tensor.dtype == torch.bool:
            value = s.pick(None, 0, 1, True)
        low = -2
    else:
        count = s.r.randint(1, 3)
        shape = [s.size(0 if s.chance(0.1) else 1) for _ in range(count + s.r.randint(1, 2))]
        while _numel(shape) > 600:
            shape[s.r.randrange(len(shape))] = 1
        x, value, low = s.tensor(shape, s.dtype(1, 0, 0)), None, -1
    pad = [s.r.randint(low if s.chance(0.2) else 0, 3) for _ in range(2 * count)]
    if mode == "circular" and min(pad) < 0 < max(pad):
        # PyTorch returns memory that it never wrote where one end grows and the other shrinks.
        pad = [abs(end) for end in pad]
    if s.chance(0.02):
        pad.append(1)
    return [x, pad, mode, value]


@op("roll", lambda x, n, d: torch.roll(x, n, () if d is None else d))
def _(s):
    x = s.any()
    rank = rank_of(x)
    if s.chance(0.3) or rank == 0:
        return [x, [s.r.randint(-7, 7)], None]
    dims = [s.dim(rank) for _ in range(s.r.randint(1, 3))]
    return [x, [s.r.randint(-7, 7) for _ in range(len(dims) + (1 if s.chance(0.02) else 0))], dims]


@op("flip", lambda x, d: torch.flip(x, d))
def _(s):
    x = s.any()
    return [x, named_dims(s, rank_of(x))]


for name in ["fliplr", "flipud"]:
    op(name, getattr(torch, name))(lambda s: [s.any(0 if s.chance(0.03) else 2)])


@op("rot90", lambda x, k, d: torch.rot90(x, k, d))
def _(s):
    x = s.any(2)
    rank = rank_of(x)
    dims = s.r.sample(range(rank), 2) if not s.chance(0.03) else [0]
    return [x, s.r.randint(-5, 5), [d - rank if s.chance(0.3) else d for d in dims]]


def repeats(x, n, d):
    return torch.repeat_interleave(x, torch.tensor(n) if len(n) != 1 else n[0], d)


@op("repeat_interleave", repeats)
def _(s):
    x = s.any(1)
    d = None if s.chance(0.3) else s.dim(rank_of(x))
    count = x.tensor.numel() if d is None else size_at(x, d)
    each = s.chance(0.5) and count > 1
    numbers = [s.r.randint(0, 3) for _ in range(count + (1 if s.chance(0.02) else 0))] if each else [s.r.randint(-1 if s.chance(0.03) else 0, 3)]
    return [x, numbers, d]


@op("repeat", lambda x, n: x.repeat(n))
def _(s):
    x = s.any(0, 4, numel=60)
    count = rank_of(x) + s.r.randint(-1 if s.chance(0.03) else 0, 2)
    return [x, [s.r.randint(-1 if s.chance(0.02) else 0, 3) for _ in range(max(count, 0))]]


@op("tile", lambda x, n: torch.tile(x, n))
def _(s):
    x = s.any(0, 4, numel=60)
    return [x, [s.r.randint(0, 3) for _ in range(s.r.randint(0, rank_of(x) + 1))]]


@op("meshgrid", lambda xs, i: torch.meshgrid(xs, indexing=i))
def _(s):
    dtype = s.dtype()
    xs = [s.tensor([s.size(0, 4)] if not s.chance(0.1) else [], dtype if not s.chance(0.02) else "int64") for _ in range(s.r.randint(1, 4))]
    return [xs, s.pick("ij", "xy") if not s.chance(0.02) else "yx"]


for name in ["movedim", "moveaxis"]:

    def generator(s):
        x = s.any()
        rank = rank_of(x)
        count = s.r.randint(1, rank) if rank else 0
        pick = lambda: [d - rank if s.chance(0.3) else d for d in s.r.sample(range(rank), count)]  # noqa: E731
        a, b = pick(), pick()
        if s.chance(0.02):
            b.append(0)
        return [x, a, b]

    op(name, getattr(torch, name))(generator)

for name in ["swapaxes", "swapdims"]:

    def generator(s):
        x = s.any()
        return [x, s.dim(rank_of(x)), s.dim(rank_of(x))]

    op(name, getattr(torch, name))(generator)

for name in ["atleast_1d", "atleast_2d", "atleast_3d", "ravel"]:
    op(name, getattr(torch, name))(lambda s: [s.any()])


@op("unflatten", lambda x, d, z: torch.unflatten(x, d, z))
def _(s):
    from calls import sizes_of

    x = s.any(1 if not s.chance(0.02) else 0)
    d = s.dim(rank_of(x))
    size = size_at(x, d)
    sizes = sizes_of(s, [size]) if size > 0 else s.pick([0], [0, 2], [2, 0])
    return [x, d, sizes]


@op("broadcast_to", lambda x, z: torch.broadcast_to(x, z))
def _(s):
    from calls import FUNCTIONS

    return FUNCTIONS["expand"][1](s)


@op("broadcast_tensors", lambda xs: torch.broadcast_tensors(*xs))
def _(s):
    shape = s.shape(0, 4)
    return [[s.tensor(broadcast(s, shape), s.dtype()) for _ in range(s.r.randint(1, 3))]]


@op("narrow", lambda x, d, a, n: torch.narrow(x, d, a, n))
def _(s):
    x = s.any(1 if not s.chance(0.02) else 0)
    d = s.dim(rank_of(x))
    size = size_at(x, d)
    start = s.r.randint(0, size)
    length = s.r.randint(0, size - start) + (1 if s.chance(0.03) else 0)
    return [x, d, start - size if s.chance(0.2) and start < size else start, length]


@op("select", lambda x, d, i: torch.select(x, d, i))
def _(s):
    x = s.any(1 if not s.chance(0.02) else 0)
    d = s.dim(rank_of(x))
    size = size_at(x, d)
    return [x, d, s.r.randint(-size, size - 1) if size > 0 and not s.chance(0.03) else size]


@op("tensor_split", lambda x, n, d: torch.tensor_split(x, n, d))
def _(s):
    x = s.any()
    n = s.r.randint(0 if s.chance(0.05) else 1, 5) if s.chance(0.5) else [s.r.randint(-3, 7) for _ in range(s.r.randint(0, 3))]
    return [x, n, s.dim(rank_of(x))]


for name, at, least in [("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)]:

    def generator(s, at=at, least=least):
        x = s.any(least if not s.chance(0.03) else 0)
        size = size_at(x, min(at, rank_of(x) - 1)) if rank_of(x) else 1
        divisors = [n for n in range(1, size + 1) if size % n == 0] or [1, 2]
        n = s.r.choice(divisors) if not s.chance(0.05) else s.r.randint(0, 4)
        return [x, n if s.chance(0.5) else [s.r.randint(-3, 7) for _ in range(s.r.randint(0, 3))]]

    op(name, getattr(torch, name))(generator)


def stacked(s, at, least):
    """Tensors that differ in one dim."""
    shape, dtype = s.shape(least, 4), s.dtype()
    xs = []
    for _ in range(s.r.randint(1, 3)):
        own = list(shape)
        if len(own) > at:
            own[at] = s.size()
        elif own and len(own) == 1:
            own[0] = s.size() if at == 1 or s.chance(0.03) else own[0]
        if own and s.chance(0.02):
            own[0] += 1
        xs.append(s.tensor(own, dtype if s.chance(0.8) else s.dtype()))
    return [xs]


for name, at in [("hstack", 1), ("vstack", 0), ("row_stack", 0), ("dstack", 2), ("column_stack", 1)]:
    call = torch.vstack if name == "row_stack" else getattr(torch, name)
    op(name, call)(lambda s, at=at: stacked(s, at, 0))


@op("block_diag", lambda xs: torch.block_diag(*xs))
def _(s):
    dtype = s.dtype()
    return [[s.tensor(s.shape(0, 2 if not s.chance(0.02) else 3), dtype if s.chance(0.8) else s.dtype()) for _ in range(s.r.randint(1, 3))]]


@op("cartesian_prod", lambda xs: torch.cartesian_prod(*xs))
def _(s):
    dtype = s.dtype()
    return [[s.tensor([s.size(0, 4)], dtype) for _ in range(s.r.randint(1, 3))]]


@op("combinations", lambda x, r, w: torch.combinations(x, r, w))
def _(s):
    return [s.tensor([s.size(0, 5)] if not s.chance(0.02) else [2, 2], s.dtype()), s.r.randint(1, 3), s.chance(0.4)]


@op("diagonal", lambda x, o, a, b: torch.diagonal(x, o, a, b))
def _(s):
    x = s.any(2 if not s.chance(0.02) else 0)
    return [x, s.r.randint(-4, 4), s.dim(rank_of(x)), s.dim(rank_of(x))]


@op("diag_embed", lambda x, o, a, b: torch.diag_embed(x, o, a, b))
def _(s):
    x = s.any(1, 3, numel=60)
    rank = rank_of(x) + 1
    return [x, s.r.randint(-3, 3), s.dim(rank), s.dim(rank)]


@op("diag", lambda x, o: torch.diag(x, o))
def _(s):
    return [s.any(1, 2 if not s.chance(0.03) else 3), s.r.randint(-3, 3)]


@op("diagflat", lambda x, o: torch.diagflat(x, o))
def _(s):
    return [s.any(0, 3, numel=12), s.r.randint(-3, 3)]


@op("trace", torch.trace, 16)
def _(s):
    return [s.tensor([s.size(), s.size()] if not s.chance(0.03) else [2], s.dtype())]


# Selection


def indexed(s, style=None, dtype=None):
    """A tensor, a dim, places along it for a part of the shape."""
    x = s.tensor(s.shape(), dtype or s.dtype(8, 4, 0), style)
    shape = list(x.tensor.shape)
    d = s.dim(len(shape))
    own = [s.r.randint(0, n) if s.chance(0.3) else n for n in shape]
    if own and s.chance(0.5) and -len(shape) <= d < len(shape):
        own[d] = s.r.randint(0, 5)
    if own and s.chance(0.02):
        own[0] += 1
    return x, d, own, places(s, own, size_at(x, d))


def unique_places(s, x, d, own):
    """Places along the dim, none of them twice, so that what stays is one."""
    rank = len(own)
    size = size_at(x, d)
    if rank == 0:
        return T(torch.zeros([], dtype=torch.int64))
    if -rank <= d < rank:
        own[d] = min(own[d], size)
    index = torch.zeros(own, dtype=torch.int64)
    if index.numel() and -rank <= d < rank:
        lines = index.transpose(d, -1)
        flat = torch.stack([torch.tensor(s.r.sample(range(size), own[d])) for _ in range(lines.numel() // own[d])])
        index = flat.reshape(lines.shape).transpose(d, -1).contiguous()
    return T(index)


def scattered(s, numbers=False, several=True, style="normal", **more):
    x, d, own, index = indexed(s, style, **more)
    if not several:
        index = unique_places(s, x, d, own)
    source = [n + (s.r.randint(0, 2) if s.chance(0.2) else 0) for n in index.tensor.shape]
    dtype = str(x.tensor.dtype).removeprefix("torch.")
    if s.chance(0.02):
        dtype = s.dtype(1, 1, 0)
    return [x, d, index, s.tensor(source, dtype, style if dtype in FLOATS else "small")]


@op("scatter", lambda x, d, i, y: torch.scatter(x, d, i, y))
def _(s):
    return scattered(s, several=False, style=None)


@op("scatter_value", lambda x, d, i, v: torch.scatter(x, d, i, v))
def _(s):
    x, d, _, index = indexed(s)
    return [x, d, index, s.pick(0, 1, 2.0, 7)]


@op("scatter_add", torch.scatter_add, 16)
def _(s):
    return scattered(s)


@op("scatter_reduce", lambda x, d, i, y, r, k: torch.scatter_reduce(x, d, i, y, r, include_self=k), 16)
def _(s):
    return [*scattered(s), s.pick("sum", "prod", "mean", "amax", "amin") if not s.chance(0.02) else "other", s.chance(0.5)]


def slices(s, unique=False, dtype=None):
    if s.chance(0.06):
        # Numbers, and vectors of one element.
        dtype = dtype or s.dtype(8, 4, 0)
        x = s.tensor(s.pick([], [1], [3]), dtype, "normal")
        index = T(torch.zeros(s.pick([], [1]) if unique else s.pick([], [1], [2]), dtype=torch.int64))
        return x, s.pick(0, -1), index, s.tensor(s.pick([], [1], [1, 1], [2]), dtype, "small")
    x = s.tensor(s.shape(1), dtype or s.dtype(8, 4, 0), "normal")
    d = s.dim(rank_of(x))
    count = size_at(x, d)
    index = places(s, [s.size(0, 5)], count)
    if unique:
        index = T(torch.tensor(s.r.sample(range(count), s.r.randint(0, count)), dtype=torch.int64))
    shape = list(x.tensor.shape)
    if -len(shape) <= d < len(shape):
        shape[d] = index.tensor.numel()
    if s.chance(0.02):
        shape[-1] += 1
    return x, d, index, s.tensor(shape, str(x.tensor.dtype).removeprefix("torch."), "small")


@op("index_add", lambda x, d, i, y, a: torch.index_add(x, d, i, y, alpha=a), 16)
def _(s):
    x, d, index, source = slices(s)
    return [x, d, index, source, s.pick(1, 1, 2, -1)]


@op("index_copy", torch.index_copy)
def _(s):
    return list(slices(s, unique=True))


@op("index_fill", torch.index_fill)
def _(s):
    x, d, index, _ = slices(s)
    while x.tensor.numel() == 0:
        x, d, index, _ = slices(s)
    return [x, d, index, s.pick(0, 1, 2.0)]


@op("index_put", lambda x, i, v, a: torch.index_put(x, tuple(i), v, a), 16)
def _(s):
    x = s.tensor(s.shape(1), s.dtype(8, 4, 0), "normal")
    shape = list(x.tensor.shape)
    several = s.r.randint(1, len(shape))
    accumulate = s.chance(0.5)
    common = s.shape(0, 2, 12)
    flat = _numel(common)
    if not accumulate:
        # No place twice, so that what stays is one.
        flat = min(flat, _numel(shape[:several]))
        common = [flat]
        chosen = torch.tensor(s.r.sample(range(_numel(shape[:several])), flat), dtype=torch.int64)
        indices = [T(i.clone()) for i in torch.unravel_index(chosen, shape[:several])] if flat else [T(torch.zeros([0], dtype=torch.int64)) for _ in range(several)]
    else:
        indices = [places(s, common, n) for n in shape[:several]]
    values = broadcast(s, common + shape[several:])
    return [x, indices, s.tensor(values, str(x.tensor.dtype).removeprefix("torch."), "small"), accumulate]


@op("masked_scatter", lambda x, m, y: torch.masked_scatter(x, m, y))
def _(s):
    x = s.any(dtype=s.dtype())
    mask = s.tensor(broadcast(s, list(x.tensor.shape)), "bool")
    count = max(x.tensor.numel() - (1 if s.chance(0.05) else 0), 0)
    return [x, mask, s.tensor([count], str(x.tensor.dtype).removeprefix("torch."))]


@op("masked_select", torch.masked_select)
def _(s):
    shape = s.shape()
    a, b = shape, broadcast(s, shape)
    if s.chance(0.3):
        a, b = b, a
    return [s.tensor(a, s.dtype()), s.tensor(b, "bool" if not s.chance(0.03) else "int64")]


@op("take", torch.take)
def _(s):
    x = s.any()
    count = x.tensor.numel()
    index = places(s, s.shape(0, 3), count)
    if count and s.chance(0.3):
        index = T(index.tensor - (index.tensor > count // 2).long() * count)
    return [x, index]


@op("take_along_dim", lambda x, i, d: torch.take_along_dim(x, i, d))
def _(s):
    x = s.any(1)
    shape = list(x.tensor.shape)
    if s.chance(0.2):
        return [x, places(s, s.shape(0, 2), x.tensor.numel()), None]
    d = s.dim(len(shape))
    own = [1 if s.chance(0.3) else n for n in shape]
    if -len(shape) <= d < len(shape):
        own[d] = s.r.randint(0, 4)
    return [x, places(s, own, size_at(x, d)), d]


@op("select_scatter", lambda x, y, d, i: torch.select_scatter(x, y, d, i))
def _(s):
    x = s.any(1)
    d = s.dim(rank_of(x))
    shape, size = list(x.tensor.shape), size_at(x, d)
    if -len(shape) <= d < len(shape):
        shape.pop(d)
    if s.chance(0.02):
        shape.append(2)
    return [x, s.tensor(shape, str(x.tensor.dtype).removeprefix("torch.")), d, s.r.randint(-size, size - 1) if size else 0]


@op("slice_scatter", lambda x, y, d, a, b, n: torch.slice_scatter(x, y, d, a, b, n))
def _(s):
    x = s.any(1)
    d = s.dim(rank_of(x))
    shape, size = list(x.tensor.shape), size_at(x, d)
    start, end = s.pick(None, s.r.randint(-size - 1, size + 1)), s.pick(None, s.r.randint(-size - 1, size + 1))
    step = s.r.randint(1, 3)
    if -len(shape) <= d < len(shape):
        shape[d] = len(range(size)[start:end:step])
    if s.chance(0.02):
        shape.append(2)
    return [x, s.tensor(shape, str(x.tensor.dtype).removeprefix("torch.")), d, start, end, step]


@op("diagonal_scatter", lambda x, y, o, a, b: torch.diagonal_scatter(x, y, o, a, b))
def _(s):
    x = s.any(2)
    a, b, o = s.dim(rank_of(x)), s.dim(rank_of(x)), s.r.randint(-2, 2)
    try:
        shape = list(torch.diagonal(x.tensor, o, a, b).shape)
    except (RuntimeError, IndexError):
        shape = [1]
    return [x, s.tensor(shape, str(x.tensor.dtype).removeprefix("torch.")), o, a, b]


def ordered(call):
    return lambda x, d, r: call(x, dim=d, descending=r, stable=True)


for name, call in [("sort", ordered(torch.sort)), ("argsort", lambda x, d, r: ordered(torch.sort)(x, d, r)[1])]:

    def generator(s):
        x = s.any() if s.chance(0.5) else distinct(s, s.shape(numel=90), s.pick(*FLOATS, *INTS))
        return [x, s.dim(rank_of(x)), s.chance(0.5)]

    op(name, call)(generator)

op("msort", torch.msort)(lambda s: [s.any(0 if s.chance(0.1) else 1)])


def groups(call):
    def result(x, inverse, counts, d):
        found = call(x, inverse, counts, d)
        found = [found] if isinstance(found, torch.Tensor) else list(found)
        none = torch.zeros(0, dtype=torch.int64)
        values = found.pop(0)
        of = found.pop(0) if inverse else none
        return [values, of, found.pop(0) if counts else none]

    return result


def repeated(s):
    shape = s.shape(0, 3, 60)
    dtype = s.dtype()
    style = None if s.chance(0.2) else "small"
    d = None
    if s.chance(0.4):
        shape = [max(n, 1) for n in shape]
        d, style = s.dim(len(shape)), "small"
    return [s.tensor(shape, dtype, style if dtype != "bool" else None), s.chance(0.5), s.chance(0.5), d]


def unique(x, inverse, counts, d):
    return torch.unique(x, True, inverse, counts, d)


op("unique", lambda x, o, i, c, d: groups(unique)(x, i, c, d))(lambda s: (lambda a: [a[0], True, *a[1:]])(repeated(s)))
op("unique_consecutive", groups(lambda x, i, c, d: torch.unique_consecutive(x, return_inverse=i, return_counts=c, dim=d)))(repeated)


@op("bincount", lambda x, w, n: torch.bincount(x, w, n), 16)
def _(s):
    count = s.size()
    x = places(s, [count] if not s.chance(0.02) else [2, 2], 8, s.pick("int64", "int64", "int32", "int16", "uint8"), 0.0)
    if count and s.chance(0.02):
        x = T(x.tensor.to(torch.int64) - 9)
    weights = None if s.chance(0.5) else s.tensor([count + (1 if s.chance(0.02) else 0)], s.dtype(4, 2, 0), "normal")
    if weights is not None and not weights.tensor.is_floating_point():
        weights = s.tensor([count], s.pick(*INTS), "small")
    return [x, weights, s.r.randint(0, 9)]


def in_order(s, shape, dtype):
    x = s.tensor(shape, dtype, "small" if s.chance(0.6) else "normal")
    return T(torch.sort(x.tensor, -1)[0].contiguous())


@op("searchsorted", lambda q, v, i, r, side, sorter: torch.searchsorted(q, v, out_int32=i, right=r, side=side, sorter=sorter))
def _(s):
    dtype = s.dtype(8, 4, 0)
    lead = [s.size(1, 3) for _ in range(s.r.randint(0, 2))]
    sequence = in_order(s, [*lead, s.size()], dtype)
    values = s.tensor([*lead, s.size()] if lead or s.chance(0.7) else s.shape(0, 3), dtype if not s.chance(0.02) else s.dtype(1, 1, 0), s.pick("small", None))
    sorter = None
    if s.chance(0.2):
        unsorted = s.tensor(list(sequence.tensor.shape), dtype, "small")
        sequence, sorter = unsorted, T(torch.argsort(unsorted.tensor, dim=-1, stable=True).contiguous())
    right = s.chance(0.4)
    side = s.pick(None, None, "right" if right or s.chance(0.9) else "left")
    return [sequence, values, s.chance(0.3), right, side, sorter]


@op("bucketize", lambda x, b, i, r: torch.bucketize(x, b, out_int32=i, right=r))
def _(s):
    dtype = s.dtype(8, 4, 0)
    return [s.tensor(s.shape(), dtype, s.pick("small", None)), in_order(s, [s.size()] if not s.chance(0.02) else [2, 2], dtype), s.chance(0.3), s.chance(0.5)]


@op("isin", lambda x, t, u, i: torch.isin(x, t, assume_unique=u, invert=i))
def _(s):
    dtype = s.dtype(8, 4, 0)
    x, t = s.tensor(s.shape(), dtype, "small"), s.tensor(s.shape(), dtype if s.chance(0.8) else s.dtype(8, 4, 0), "small")
    return [x, t, False, s.chance(0.3)]


for name in ["nonzero", "argwhere"]:
    op(name, getattr(torch, name))(lambda s: [s.any(style="small") if s.chance(0.7) else s.any()])


# Products


def factors(s, dtype, left, right):
    other = dtype if not s.chance(0.02) else s.dtype()
    style = s.pick("normal", "normal", "small") if dtype in FLOATS else None
    return [s.tensor(left, dtype, style), s.tensor(right, other, style if other in FLOATS else None)]


def off(s, n):
    return n + (1 if s.chance(0.02) else 0)


def product(name, shapes):
    @op(name, getattr(torch, name), 16)
    def _(s):
        a, b, c, n = s.size(), s.size(), s.size(), s.size(0, 3)
        left, right = shapes(s, a, b, c, n)
        return factors(s, s.dtype(8, 3, 0), left, right)


product("mm", lambda s, a, b, c, n: ([a, b], [off(s, b), c] if not s.chance(0.02) else [b]))
product("bmm", lambda s, a, b, c, n: ([n, a, b], [off(s, n), b, c]))
product("mv", lambda s, a, b, c, n: ([a, b], [off(s, b)]))
product("dot", lambda s, a, b, c, n: ([a], [off(s, a)]))
product("vdot", lambda s, a, b, c, n: ([a], [off(s, a)]))
product("inner", lambda s, a, b, c, n: ([*s.shape(0, 2), b] if s.chance(0.9) else [], [*s.shape(0, 2), off(s, b)]))
product("outer", lambda s, a, b, c, n: ([a], [b]))
product("ger", lambda s, a, b, c, n: ([a], [b] if not s.chance(0.02) else [b, c]))


def grouped(a, b, ends):
    if a.dtype != torch.float64:
        return F.grouped_mm(a, b, offs=ends)
    # Which has no kernel.
    starts = [0, *ends.tolist()[:-1]]
    return torch.cat([a[start:end] @ b[at] for at, (start, end) in enumerate(zip(starts, ends.tolist()))])


@op("grouped_mm", grouped, 16)
def _(s):
    # PyTorch asks for rows of a multiple of 16 bytes, and leaves rows after the last offset undefined.
    inner, width = 8 * s.r.randint(1, 2), 8 * s.r.randint(1, 2)
    counts = [s.r.randint(0, 3) for _ in range(s.r.randint(1, 4))]
    ends = [sum(counts[: at + 1]) for at in range(len(counts))]
    dtype = s.pick("float32", "float32", "bfloat16")
    left, right = s.dense([ends[-1], inner], dtype, "normal"), s.dense([len(ends), inner, width], dtype, "normal")
    return [T(left), T(right), T(torch.tensor(ends, dtype=torch.int32))]


def summed(name, shapes):
    # What is added may take away most of a product: the result is far smaller than what it is made of.
    @op(name, lambda x, a, b, beta, alpha, call=getattr(torch, name): call(x, a, b, beta=beta, alpha=alpha), 64)
    def _(s):
        own, left, right = shapes(s, s.size(), s.size(), s.size(), s.size(0, 3))
        dtype = s.dtype(8, 3, 0)
        style = "normal" if dtype in FLOATS else "small"
        numbers = [1, 1, 2, 0, -1] + ([0.5, 1.5] if dtype in FLOATS else [])
        own = own if not s.chance(0.3) else broadcast(s, own)
        return [s.tensor(own, dtype, style), s.tensor(left, dtype, style), s.tensor(right, dtype, style), s.pick(*numbers), s.pick(*numbers)]


summed("addmm", lambda s, a, b, c, n: ([a, c], [a, b], [off(s, b), c]))
# PyTorch gives the input as it is where the matrix is empty.
summed("addmv", lambda s, a, b, c, n: ([a], [a, b or 1], [off(s, b or 1)]))
summed("addbmm", lambda s, a, b, c, n: ([a, c], [n, a, b], [n, off(s, b), c]))
summed("baddbmm", lambda s, a, b, c, n: ([n, a, c], [n, a, b], [n, off(s, b), c]))
summed("addr", lambda s, a, b, c, n: ([a, b], [a], [b]))


@op("kron", torch.kron, 4)
def _(s):
    return [s.any(0, 3, numel=30), s.any(0, 3, numel=30)]


@op("tensordot", lambda a, b, n: torch.tensordot(a, b, n), 16)
def _(s):
    shared = [s.size(1, 3) for _ in range(s.r.randint(0, 2))]
    left, right = [*s.shape(0, 2, 20), *shared], [*shared, *s.shape(0, 2, 20)]
    return [*factors(s, s.dtype(8, 2, 0), left, right), len(shared)]


@op("tensordot_dims", lambda a, b, d, e: torch.tensordot(a, b, (d, e)), 16)
def _(s):
    left = s.shape(1, 3, 60)
    count = s.r.randint(1, len(left))
    of_a = s.r.sample(range(len(left)), count)
    right = [left[d] for d in of_a] + s.shape(0, 2, 20)
    order = s.r.sample(range(len(right)), len(right))
    of_b = [order.index(i) for i in range(count)]
    right = [right[i] for i in order]
    return [*factors(s, s.dtype(8, 2, 0), left, right), of_a, of_b]


def chain(s, ends):
    sizes = [s.size(1, 5) for _ in range(s.r.randint(3, 5))]
    shapes = [[a, b] for a, b in zip(sizes, sizes[1:])]
    if ends and s.chance(0.2):
        shapes[0] = shapes[0][1:]
    if ends and s.chance(0.2):
        shapes[-1] = shapes[-1][:1]
    dtype = s.dtype(1, 0, 0)
    return [[s.tensor(shape, dtype, "normal") for shape in shapes]]


op("multi_dot", torch.linalg.multi_dot, 64)(lambda s: chain(s, True))
op("chain_matmul", lambda xs: torch.chain_matmul(*xs), 64)(lambda s: chain(s, False))


@op("cross", lambda a, b, d: torch.cross(a, b, **({} if d is None else {"dim": d})), 8)
def _(s):
    shape = s.shape(1, 3, 40)
    d = s.r.randrange(len(shape))
    shape[d] = 3 if not s.chance(0.03) else 2
    other = [1 if i != d and s.chance(0.1) else n for i, n in enumerate(shape)]
    dtype = s.dtype(8, 4, 0)
    return [s.tensor(shape, dtype, "normal"), s.tensor(other, dtype if s.chance(0.9) else s.dtype(8, 4, 0), "normal"), None if s.chance(0.2) and shape.index(3 if 3 in shape else shape[0]) == d else d]


@op("vander", lambda x, n, i: torch.vander(x, n, i), 16)
def _(s):
    return [s.tensor([s.size(0, 5)] if not s.chance(0.02) else [2, 2], s.dtype(8, 4, 1), "small"), s.pick(None, 0, 1, 3, 4), s.chance(0.5)]


@op("bilinear", F.bilinear, 32)
def _(s):
    n, m, out, dtype = s.size(1, 4), s.size(1, 4), s.size(1, 4), s.dtype(1, 0, 0)
    lead = s.shape(0, 2, 20)
    bias = None if s.chance(0.4) else s.float([out], "normal", dtype)
    return [s.float([*lead, n], "normal", dtype), s.float([*lead, off(s, m)], "normal", dtype), s.float([out, n, m], "normal", dtype), bias]


MODES = ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"]


@op("cdist", lambda a, b, p, m: torch.cdist(a, b, p, m), 64)
def _(s):
    dtype = s.pick("float32", "float64") if not s.chance(0.02) else s.pick(*INTS)
    width, batch = s.size(0, 4), s.shape(0, 2, 6)
    rows = s.r.randint(26, 30) if s.chance(0.1) else s.size(0, 5)
    left = [*(batch if s.chance(0.7) else []), rows, width]
    return [s.tensor(left, dtype, "normal"), s.tensor([*batch, s.size(0, 5), off(s, width)], dtype, "normal"), s.pick(2.0, 2.0, 1.0, 0.0, 0.5, 3.0, float("inf")), s.r.choice(MODES)]
