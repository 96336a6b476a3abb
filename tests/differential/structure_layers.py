"""Random layers that rearrange, pool, normalise and recur: beside those of `layers`."""

import torch
from torch import nn

from layers import conv, layer, pair
from values import T
from windows import depth, half, numbers, space

# PyTorch's other path reads numbers in a mask as truth values.
torch.backends.mha.set_fastpath_enabled(False)


for count in [1, 2, 3]:
    for name in ["ReflectionPad", "ReplicationPad", "CircularPad", "ZeroPad", "ConstantPad"]:

        def pads(s, count=count, name=name):
            o = {"padding": [s.r.randint(0, 2) for _ in range(2 * count)]}
            if name == "ConstantPad":
                o["value"] = s.pick(0.5, -1.0)
            return o, lambda: getattr(nn, f"{name}{count}d")(**o), [space(s, count, 3, 4)]

        layer(f"{name}{count}d")(pads)

    def maximum(s, count=count):
        k = numbers(s, count, 1)
        o = {"kernel_size": k, "stride": numbers(s, count, 1), "padding": half(s, k), "dilation": numbers(s, count, 1, 2), "ceil_mode": s.chance(0.3)}
        return o, lambda: getattr(nn, f"MaxPool{count}d")(**o), [space(s, count, 3, 6)]

    def average(s, count=count):
        k = numbers(s, count, 1)
        o = {"kernel_size": k, "stride": numbers(s, count, 1), "padding": half(s, k), "ceil_mode": s.chance(0.3), "count_include_pad": s.chance(0.5)}
        return o, lambda: getattr(nn, f"AvgPool{count}d")(**o), [space(s, count, 3, 6, s.pick("float32", "float64"))]

    if count != 2:
        layer(f"MaxPool{count}d")(maximum)
        layer(f"AvgPool{count}d", 16)(average)

    for kind in ["Avg", "Max"]:

        def adaptive(s, count=count, kind=kind):
            o = {"output_size": numbers(s, count, 1, 4)}
            return o, lambda: getattr(nn, f"Adaptive{kind}Pool{count}d")(**o), [space(s, count)]

        if kind == "Max" or count != 2:
            layer(f"Adaptive{kind}Pool{count}d", 16)(adaptive)

    def power(s, count=count):
        o = {"norm_type": s.pick(1.0, 2.0), "kernel_size": numbers(s, count, 1), "stride": numbers(s, count, 1), "ceil_mode": s.chance(0.3)}
        return o, lambda: getattr(nn, f"LPPool{count}d")(**o), [T(space(s, count, 3, 6).tensor.abs() + 0.25)]

    if count != 3:
        layer(f"LPPool{count}d", 16)(power)

    def unpool(s, count=count):
        k = numbers(s, count, 1, 2)
        o = {"kernel_size": k, "stride": k}
        x = space(s, count, 2, 5)
        y, at = getattr(nn.functional, f"max_pool{count}d")(x.tensor, k, k, return_indices=True)
        try:
            getattr(nn.functional, f"max_unpool{count}d")(y, at, k, k)
        except (RuntimeError, ValueError):
            at = torch.zeros_like(at)
            y = torch.zeros_like(y)
        return o, lambda: getattr(nn, f"MaxUnpool{count}d")(**o), [T(y), T(at), None]

    layer(f"MaxUnpool{count}d")(unpool)

    def dropout(s, count=count):
        o = {"p": s.pick(0.0, 0.3, 1.0)}
        return o, lambda: getattr(nn, f"Dropout{count}d")(**o), [space(s, count)]

    layer(f"Dropout{count}d")(dropout)

    def instance(s, count=count):
        o = {"num_features": s.size(1, 3), "affine": s.chance(0.5), "track_running_stats": s.chance(0.5)}
        return o, lambda: getattr(nn, f"InstanceNorm{count}d")(**o), [s.float([s.size(1, 2), o["num_features"], *[s.r.randint(2, 4) for _ in range(count)]], "normal")]

    layer(f"InstanceNorm{count}d", 32, True)(instance)


@layer("Unfold")
def _(s):
    o = {"kernel_size": pair(s, 1), "dilation": pair(s, 1, 2), "padding": pair(s, 0, 2), "stride": pair(s, 1)}
    return o, lambda: nn.Unfold(**o), [space(s, 2, 5, 7)]


@layer("Fold", 16)
def _(s):
    k, size = pair(s, 1), pair(s, 3, 6)
    o = {"output_size": size, "kernel_size": k, "dilation": [1, 1], "padding": pair(s, 0, 1), "stride": pair(s, 1)}
    blocks = [(n + 2 * p - a) // t + 1 for n, a, p, t in zip(size, k, o["padding"], o["stride"])]
    return o, lambda: nn.Fold(**o), [s.float([s.size(1, 2), s.r.randint(1, 2) * k[0] * k[1], blocks[0] * blocks[1]], "normal")]


@layer("PixelShuffle")
def _(s):
    o = {"upscale_factor": s.r.randint(1, 3)}
    return o, lambda: nn.PixelShuffle(**o), [space(s, 2, inner=o["upscale_factor"] ** 2)]


@layer("PixelUnshuffle")
def _(s):
    o = {"downscale_factor": s.r.randint(1, 3)}
    r = o["downscale_factor"]
    return o, lambda: nn.PixelUnshuffle(**o), [s.float([s.size(1, 2), 2, r * s.size(1, 2), r * s.size(1, 2)])]


@layer("ChannelShuffle")
def _(s):
    o = {"groups": s.r.randint(1, 3)}
    return o, lambda: nn.ChannelShuffle(**o), [s.float([s.size(1, 2), o["groups"] * s.r.randint(1, 2), s.size(1, 4)])]


@layer("Unflatten")
def _(s):
    o = {"dim": s.pick(1, -1), "unflattened_size": s.pick([2, 3], [-1, 2], [6, 1])}
    return o, lambda: nn.Unflatten(**o), [s.tensor([s.size(1, 3), 6], s.dtype(1, 0, 0))]


def two(s):
    shape, dtype = [s.size(1, 3), s.size(1, 4), 2], s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype, "normal"), s.tensor(shape, dtype, "normal")]


@layer("CosineSimilarity", 16)
def _(s):
    o = {"dim": s.pick(0, 1, -1), "eps": s.pick(1e-8, 1e-6)}
    return o, lambda: nn.CosineSimilarity(**o), two(s)


@layer("PairwiseDistance", 32)
def _(s):
    o = {"p": s.pick(1.0, 2.0, 3.0), "eps": s.pick(1e-6, 0.1), "keepdim": s.chance(0.5)}
    return o, lambda: nn.PairwiseDistance(**o), two(s)


for name in ["AlphaDropout", "FeatureAlphaDropout"]:

    def alpha(s, name=name):
        o = {"p": s.pick(0.0, 0.3)}
        return o, lambda: getattr(nn, name)(**o), [s.float(s.shape(2, 4), "normal")]

    layer(name)(alpha)


class Depth(nn.Module):
    def __init__(self, p, mode):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x):
        return depth(x, self.p, self.mode, self.training)


@layer("StochasticDepth")
def _(s):
    o = {"p": s.pick(0.0, 0.3), "mode": s.pick("batch", "row")}
    return o, lambda: Depth(**o), [s.float(s.shape(1, 4), "normal")]


@layer("LocalResponseNorm", 32)
def _(s):
    o = {"size": s.r.randint(1, 4), "alpha": s.pick(1e-4, 0.1), "beta": 0.75, "k": s.pick(1.0, 2.0)}
    return o, lambda: nn.LocalResponseNorm(**o), [s.float([s.size(1, 2), s.size(1, 5), s.size(1, 4)], "normal")]


@layer("BatchNorm3d", 16, True)
def _(s):
    o = {"num_features": s.size(1, 3), "eps": s.pick(1e-5, 1e-3), "momentum": s.pick(0.1, 0.5)}
    shape = [s.size(1, 3), o["num_features"], *[s.r.randint(1, 3) for _ in range(3)]]
    return o, lambda: nn.BatchNorm3d(**o), [s.float(shape, s.pick("normal", "small"))]


def volumes(s, count):
    o = conv(s, False)
    for key, least, most in [("kernel_size", 1, 2), ("stride", 1, 2), ("padding", 0, 1), ("dilation", 1, 2)]:
        o[key] = numbers(s, count, least, most)
    return o


@layer("Conv3d", 16)
def _(s):
    o = volumes(s, 3)
    return o, lambda: nn.Conv3d(**o), [space(s, 3, 3, 5, inner=o["in_channels"])]


for count in [1, 3]:

    def transposed(s, count=count):
        o = volumes(s, count)
        o["padding"] = 0 if count == 1 else [0] * 3
        o["output_padding"] = 0 if count == 1 else [0] * 3
        return o, lambda: getattr(nn, f"ConvTranspose{count}d")(**o), [space(s, count, 1, 4, inner=o["in_channels"])]

    layer(f"ConvTranspose{count}d", 16)(transposed)


@layer("Bilinear", 32)
def _(s):
    o = {"in1_features": s.size(1, 4), "in2_features": s.size(1, 4), "out_features": s.size(1, 4), "bias": s.chance(0.5)}
    dtype, lead = s.dtype(1, 0, 0), s.shape(0, 2, 12)
    return o, lambda: nn.Bilinear(**o), [s.float([*lead, o["in1_features"]], "normal", dtype), s.float([*lead, o["in2_features"]], "normal", dtype)]


for name in ["GRU", "RNN"]:

    def network(s, name=name):
        o = {"input_size": s.size(1, 4), "hidden_size": s.size(1, 3), "num_layers": s.r.randint(1, 2), "bias": s.chance(0.7), "batch_first": s.chance(0.5), "bidirectional": s.chance(0.4)}
        if name == "RNN":
            o["nonlinearity"] = s.pick("tanh", "relu")
        batch, length, dtype = s.size(1, 3), s.size(1, 4), s.dtype(1, 0, 0)
        x = s.float([*([batch, length] if o["batch_first"] else [length, batch]), o["input_size"]], "normal", dtype)
        state = s.float([o["num_layers"] * (2 if o["bidirectional"] else 1), batch, o["hidden_size"]], "normal", dtype) if s.chance(0.5) else None
        return o, lambda: getattr(nn, name)(**o), [x, state]

    layer(name, 16)(network)

for name in ["GRUCell", "RNNCell", "LSTMCell"]:

    def cell(s, name=name):
        o = {"input_size": s.size(1, 4), "hidden_size": s.size(1, 3), "bias": s.chance(0.7)}
        if name == "RNNCell":
            o["nonlinearity"] = s.pick("tanh", "relu")
        lead, dtype = [] if s.chance(0.3) else [s.size(1, 3)], s.dtype(1, 0, 0)
        state = lambda: s.float([*lead, o["hidden_size"]], "normal", dtype)  # noqa: E731
        hx = None if s.chance(0.4) else [state(), state()] if name == "LSTMCell" else state()
        return o, lambda: getattr(nn, name)(**o), [s.float([*lead, o["input_size"]], "normal", dtype), hx]

    # What the gates add up may be far larger than what comes of it.
    layer(name, 64)(cell)


def transformer(s):
    heads = s.r.randint(1, 2)
    o = {"d_model": heads * s.r.randint(1, 3), "nhead": heads, "dim_feedforward": s.size(1, 4), "activation": s.pick("relu", "gelu"), "layer_norm_eps": s.pick(1e-5, 1e-3), "batch_first": s.chance(0.5), "norm_first": s.chance(0.5)}
    batch, dtype = s.size(1, 2), s.dtype(1, 0, 0)

    def sequence(n):
        return s.float([batch, n, o["d_model"]] if o["batch_first"] else [n, batch, o["d_model"]], "normal", dtype)

    return o, sequence, dtype


def mask(s, rows, columns, dtype):
    if s.chance(0.5):
        return None
    if s.chance(0.5):
        return s.float([rows, columns], "normal", dtype)
    hidden = s.dense([rows, columns], "bool")
    hidden[:, 0] = False
    return T(hidden)


for name in ["TransformerEncoder", "TransformerEncoderLayer"]:

    def encoder(s, name=name):
        o, sequence, dtype = transformer(s)
        length = s.size(1, 4)
        make = lambda: nn.TransformerEncoderLayer(dropout=0.0, **o)  # noqa: E731
        all_options = o | {"num_layers": s.r.randint(1, 2)}
        whole = make if name.endswith("Layer") else lambda: nn.TransformerEncoder(make(), all_options["num_layers"], enable_nested_tensor=False)
        return all_options, whole, [sequence(length), mask(s, length, length, dtype), None, False]

    layer(name, 64)(encoder)

for name in ["TransformerDecoder", "TransformerDecoderLayer"]:

    def decoder(s, name=name):
        o, sequence, dtype = transformer(s)
        length, keys = s.size(1, 3), s.size(1, 3)
        make = lambda: nn.TransformerDecoderLayer(dropout=0.0, **o)  # noqa: E731
        all_options = o | {"num_layers": s.r.randint(1, 2)}
        whole = make if name.endswith("Layer") else lambda: nn.TransformerDecoder(make(), all_options["num_layers"])
        return all_options, whole, [sequence(length), sequence(keys), mask(s, length, length, dtype), mask(s, length, keys, dtype), None, None, False, False]

    # Each of three norms divides by the deviation of a few features, which may be near 0.
    layer(name, 1024)(decoder)
