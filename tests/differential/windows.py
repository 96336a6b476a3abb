"""Random calls of windows over rows, images and volumes, of recurrent networks, norms of channels and dropouts."""

import torch
import torch.nn.functional as F

from calls import RANDOM, _name, _numel, channels, copy, of, op
from values import T, plain


def space(s, count, least=1, most=6, dtype=None, inner=None):
    """A batch or none, channels, and `count` dims."""
    shape = [inner or s.size(1, 3), *[s.r.randint(least, most) for _ in range(count)]]
    if s.chance(0.8):
        shape = [s.r.randint(1, 2), *shape]
    return s.tensor(shape, dtype or s.dtype(1, 0, 0), s.pick("normal", "small"))


def numbers(s, count, least=0, most=3):
    found = [s.r.randint(least, most) for _ in range(count)]
    return found if count > 1 else found[0]


def half(s, kernel):
    if isinstance(kernel, int):
        return s.r.randint(0, kernel // 2)
    return [s.r.randint(0, k // 2) for k in kernel]


# Convolutions


@op("conv3d", lambda x, w, b, s, p, d, g: F.conv3d(x, w, b, s, p, d, g), 16)
def _(s):
    groups, inner, outer = channels(s)
    x = space(s, 3, 2, 5, inner=inner)
    dtype = _name(x)
    weight = s.float([outer, inner // groups + (1 if s.chance(0.02) else 0), *numbers(s, 3, 1, 2)], "normal", dtype)
    return [x, weight, of(s, [outer], dtype), numbers(s, 3, 1, 2), numbers(s, 3, 0, 1), numbers(s, 3, 1, 2), groups]


def transposed(s, count):
    groups, inner, outer = channels(s)
    x = space(s, count, 1, 4, inner=inner)
    dtype = _name(x)
    kernel = numbers(s, count, 1, 2)
    weight = s.float([inner, outer // groups, *(kernel if count > 1 else [kernel])], "normal", dtype)
    stride, dilation = numbers(s, count, 1, 2), numbers(s, count, 1, 2)
    pairs = zip(stride, dilation) if count > 1 else [(stride, dilation)]
    more = [s.r.randint(0, max(a, b) - (0 if s.chance(0.02) else 1)) for a, b in pairs]
    return [x, weight, of(s, [outer], dtype), stride, numbers(s, count, 0, 1), more if count > 1 else more[0], groups, dilation]


op("conv_transpose1d", lambda x, w, b, s, p, o, g, d: F.conv_transpose1d(x, w, b, s, p, o, g, d), 16)(lambda s: transposed(s, 1))
op("conv_transpose3d", lambda x, w, b, s, p, o, g, d: F.conv_transpose3d(x, w, b, s, p, o, g, d), 16)(lambda s: transposed(s, 3))


# Pools


def max_pool(s, count):
    k = numbers(s, count, 1)
    return [space(s, count, 3, 6), k, numbers(s, count, 1), half(s, k), numbers(s, count, 1, 2), s.chance(0.3)]


for count in [1, 2, 3]:
    call = getattr(F, f"max_pool{count}d")
    if count != 2:
        op(f"max_pool{count}d", lambda x, k, s, p, d, c, call=call: call(x, k, s, p, d, c))(lambda s, count=count: max_pool(s, count))
    op(f"max_pool{count}d_with_indices", lambda x, k, s, p, d, c, call=call: call(x, k, s, p, d, c, return_indices=True))(lambda s, count=count: max_pool(s, count))

    def adaptive(s, count=count):
        return [space(s, count, 1, 6), numbers(s, count, 1, 5)]

    call = getattr(F, f"adaptive_max_pool{count}d")
    op(f"adaptive_max_pool{count}d", lambda x, o, call=call: call(x, o))(adaptive)
    op(f"adaptive_max_pool{count}d_with_indices", lambda x, o, call=call: call(x, o, return_indices=True))(adaptive)
    if count != 2:
        call = getattr(F, f"adaptive_avg_pool{count}d")
        op(f"adaptive_avg_pool{count}d", lambda x, o, call=call: call(x, o), 16)(adaptive)

        def average(s, count=count):
            k = numbers(s, count, 1)
            # PyTorch has none of volumes in half precision.
            dtype = s.pick("float32", "float64") if count == 3 else None
            return [space(s, count, 3 if count == 3 else 2, 6, dtype), k, numbers(s, count, 1), half(s, k), s.chance(0.3), s.chance(0.6)]

        call = getattr(F, f"avg_pool{count}d")
        op(f"avg_pool{count}d", lambda x, k, s, p, c, i, call=call: call(x, k, s, p, c, i), 16)(average)

    def unpool(s, count=count):
        k = numbers(s, count, 1, 3)
        stride = k if s.chance(0.7) else numbers(s, count, 1, 3)
        pool, back = getattr(F, f"max_pool{count}d"), getattr(F, f"max_unpool{count}d")
        while True:
            x = space(s, count, 3, 6)
            # Different elements, so that no place comes twice but where windows overlap.
            data = torch.randperm(x.tensor.numel()).reshape(x.tensor.shape).to(x.tensor.dtype)
            y, at = pool(data, k, stride, return_indices=True)
            flat = at.flatten(-count)
            if all(len(set(row.tolist())) == row.numel() for row in flat.reshape(-1, flat.shape[-1])):
                break
            stride = k
        size = list(data.shape)[-count:] if s.chance(0.3) else None
        if size is None:
            try:
                back(y, at, k, stride, 0)
            except (RuntimeError, ValueError):
                size = list(data.shape)[-count:]
        return [T(y), T(at), k, stride, 0 if count == 1 else [0] * count, size]

    call = getattr(F, f"max_unpool{count}d")
    op(f"max_unpool{count}d", lambda x, i, k, s, p, o, call=call: call(x, i, k, s, p, o))(unpool)

for count in [1, 2]:

    def powers(s, count=count):
        x = space(s, count, 2, 6)
        return [T(x.tensor.abs() + 0.25), s.pick(1.0, 2.0, 3.0), numbers(s, count, 1), numbers(s, count, 1), s.chance(0.3)]

    call = getattr(F, f"lp_pool{count}d")
    op(f"lp_pool{count}d", lambda x, n, k, s, c, call=call: call(x, n, k, s, c), 16)(powers)


# Blocks


def block_options(s):
    return [numbers(s, 2, 1), numbers(s, 2, 1, 2), numbers(s, 2, 0, 2), numbers(s, 2, 1)]


@op("unfold", lambda x, k, d, p, s: F.unfold(x, k, d, p, s))
def _(s):
    return [space(s, 2, 2, 7), *block_options(s)]


@op("fold", lambda x, o, k, d, p, s: F.fold(x, o, k, d, p, s), 16)
def _(s):
    k, d, p, step = block_options(s)
    size = numbers(s, 2, 3, 7)
    blocks = [max((n + 2 * b - c * (a - 1) - 1) // e + 1, 1) for n, a, c, b, e in zip(size, k, d, p, step)]
    shape = [s.r.randint(1, 3) * _numel(k), _numel(blocks) + (1 if s.chance(0.02) else 0)]
    if s.chance(0.8):
        shape = [s.r.randint(1, 2), *shape]
    return [s.tensor(shape, s.dtype(1, 0, 0), "normal"), size, k, d, p, step]


@op("pixel_shuffle", F.pixel_shuffle)
def _(s):
    r = s.r.randint(1, 3)
    return [s.any(dtype=s.dtype()) if s.chance(0.02) else s.tensor([*s.shape(0, 2, 4), r * r * s.r.randint(1, 2), s.size(1, 3), s.size(1, 3)], s.dtype()), r]


@op("pixel_unshuffle", F.pixel_unshuffle)
def _(s):
    r = s.r.randint(1, 3)
    return [s.tensor([*s.shape(0, 2, 4, 1), s.r.randint(1, 2), r * s.size(1, 2) + (1 if s.chance(0.02) else 0), r * s.size(1, 2)], s.dtype()), r]


@op("channel_shuffle", lambda x, g: torch.channel_shuffle(x, g))
def _(s):
    g = s.r.randint(1, 3)
    return [s.tensor([s.size(1, 2), g * s.r.randint(1, 3), *s.shape(1, 2, 9, 1)], s.dtype(1, 0, 0)), g]


@op("grid_sample", lambda x, g, m, p, a: F.grid_sample(x, g, m, p, a), 32)
def _(s):
    dtype, batch, dims = s.pick("float32", "float64"), s.size(1, 2), s.pick(2, 2, 3)
    x = s.tensor([batch, s.size(1, 2), *[s.r.randint(1, 5) for _ in range(dims)]], dtype, "normal")
    over = [s.r.randint(1, 4) for _ in range(dims)]
    grid = s.tensor([batch + (1 if s.chance(0.02) else 0), *over, dims], dtype, "normal")
    return [x, grid, s.pick("bilinear", "bilinear", "nearest", "bicubic"), s.pick("zeros", "border", "reflection"), s.chance(0.5)]


@op("affine_grid", lambda t, z, a: F.affine_grid(t, z, a), 16)
def _(s):
    batch, dims = s.size(1, 3), s.pick(2, 2, 3)
    size = [batch, s.size(1, 2), *[s.r.randint(1, 4) for _ in range(dims)]]
    return [s.tensor([batch, dims, dims + 1], s.pick("float32", "float64"), "normal"), size, s.chance(0.5)]


# Recurrent networks


def network(gates):
    def generator(s):
        dtype = s.dtype(1, 0, 0)
        inner, hidden, layers, biases = s.size(1, 4), s.size(1, 3), s.r.randint(1, 2), s.chance(0.7)
        both, first = s.chance(0.4), s.chance(0.5)
        ways = 2 if both else 1
        params = []
        for layer in range(layers):
            for _ in range(ways):
                width = inner if layer == 0 else hidden * ways
                shapes = [[gates * hidden, width], [gates * hidden, hidden]] + ([[gates * hidden]] * 2 if biases else [])
                params += [s.float(shape, "normal", dtype) for shape in shapes]
        batch, length = s.size(1, 3), s.size(1, 4)
        x = s.float([batch, length, inner] if first else [length, batch, inner], "normal", dtype)
        state = s.float([layers * ways, batch, hidden], "normal", dtype) if s.chance(0.6) else None
        return [x, state, params, biases, layers, 0.0, s.chance(0.5), both, first]

    return generator


def run(call):
    def result(x, h, params, biases, layers, dropout, train, both, first):
        if h is None:
            h = torch.zeros(layers * (2 if both else 1), x.shape[0 if first else 1], params[1].shape[1], dtype=x.dtype)
        return call(x, h, params, biases, layers, dropout, train, both, first)

    return result


for name, gates in [("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)]:
    op(name, run(getattr(torch, name)), 16)(network(gates))


def cell(gates, states):
    def generator(s):
        dtype, batch, inner, hidden = s.dtype(1, 0, 0), s.size(1, 3), s.size(1, 4), s.size(1, 3)
        x = s.float([batch, inner], "normal", dtype)
        hx = [s.float([batch, hidden + (1 if s.chance(0.02) else 0)], "normal", dtype) for _ in range(states)]
        weights = [s.float([gates * hidden, n], "normal", dtype) for n in (inner, hidden)]
        biases = [s.float([gates * hidden], "normal", dtype) for _ in range(2)] if s.chance(0.7) else [None, None]
        return [x, *hx, *weights, *biases]

    return generator


for name, gates in [("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)]:
    op(name, getattr(torch, name), 16)(cell(gates, 1))
op("lstm_cell", lambda x, h, c, *rest: torch.lstm_cell(x, (h, c), *rest), 64)(cell(4, 2))


# Norms


@op("instance_norm", lambda x, m, v, w, b, u, o, e: F.instance_norm(x, copy(m), copy(v), w, b, u, o, e), 32)
def _(s):
    dtype, inner = s.dtype(1, 0, 0), s.size(1, 3)
    shape = [s.size(1, 3), inner, *[s.size(1 if s.chance(0.1) else 2, 4) for _ in range(s.r.randint(1, 2))]]
    tracked = s.chance(0.6)
    mean = T(s.dense([inner], dtype, "normal")) if tracked else None
    var = T(s.dense([inner], dtype, "normal").abs() + 0.25) if tracked else None
    return [s.tensor(shape, dtype, "normal"), mean, var, of(s, [inner], dtype), of(s, [inner], dtype), s.chance(0.6) or not tracked, s.pick(0.1, 0.5), s.pick(1e-5, 1e-3)]


@op("local_response_norm", lambda x, n, a, b, k: F.local_response_norm(x, n, a, b, k), 32)
def _(s):
    shape = [s.size(1, 2), s.size(1, 5), *s.shape(1 if not s.chance(0.03) else 0, 2, 12, 1)]
    # PyTorch averages the channels of images as volumes, which it has not in half precision.
    dtype = s.dtype(1, 0, 0) if len(shape) == 3 else s.pick("float32", "float64")
    return [s.tensor(shape, dtype, "normal"), s.r.randint(1, 4), s.pick(1e-4, 0.1), s.pick(0.75, 0.5), s.pick(1.0, 2.0)]


# Dropouts


def dropped(least, most, call):
    def generator(s):
        x = s.tensor(s.shape(least, most, 120, 1), s.dtype(1, 0, 0), s.pick("normal", "small"))
        return [x, s.pick(0.0, 1.0, 0.5, 0.3, 1.5 if s.chance(0.1) else 0.2), s.chance(0.6)]

    return generator


def scaled(args):
    x, p, training = plain(args[0]), args[1], args[2]
    if not training or p in (0.0, 1.0):
        return None
    top = (x.double().abs().max().item() if x.numel() else 0.0) / (1 - p) * 1.01
    return -top, top


def moved(args):
    x, p, training = plain(args[0]), args[1], args[2]
    if not training or p in (0.0, 1.0):
        return None
    top = (x.double().abs().max().item() if x.numel() else 0.0) * 2 + 8
    return -top, top


for name, least, most in [("dropout1d", 2, 3), ("dropout2d", 3, 4), ("dropout3d", 4, 5)]:
    op(name, getattr(F, name))(dropped(least, most, name))
    RANDOM[name] = scaled
for name, least in [("alpha_dropout", 0), ("feature_alpha_dropout", 2)]:
    op(name, lambda x, p, t, call=getattr(F, name): call(x, p, t))(dropped(least, 4, name))
    RANDOM[name] = moved


def depth(x, p, mode, training):
    """torchvision's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(p)
    if mode not in ("batch", "row"):
        raise ValueError(mode)
    if not training or p == 0.0:
        return x
    size = [x.shape[0], *[1] * (x.ndim - 1)] if mode == "row" else [1] * x.ndim
    noise = torch.empty(size, dtype=x.dtype).bernoulli_(1 - p)
    return x * (noise / (1 - p) if p < 1 else noise)


@op("stochastic_depth", depth)
def _(s):
    x = s.tensor(s.shape(1, 4, 120, 1), s.dtype(1, 0, 0), s.pick("normal", "small"))
    return [x, s.pick(0.0, 1.0, 0.5, 0.3, 1.5 if s.chance(0.1) else 0.2), s.pick("batch", "row") if not s.chance(0.02) else "other", s.chance(0.6)]


RANDOM["stochastic_depth"] = lambda args: scaled([args[0], args[1], args[3]]) if args[2] in ("batch", "row") else None
