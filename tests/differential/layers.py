"""Random layers: their options, weights and inputs, beside the same layer of torch.nn."""

import torch
from torch import nn

from calls import MODES, pictures, resized
from values import DTYPES, T

LAYERS = {}


def layer(name, ulps=2, training=False):
    def put(generator):
        LAYERS[name] = (generator, ulps, training)
        return generator

    return put


def plain_layer(name, make, ulps=2):
    LAYERS[name] = (lambda s: ({}, make, [s.tensor(s.shape(), s.dtype(12, 1, 0))]), ulps, False)


for name in ["ReLU", "ReLU6", "SiLU", "Sigmoid", "Tanh", "Identity"]:
    plain_layer(name, lambda name=name: getattr(nn, name)())


def image(s, channels, dtype):
    shape = [channels, s.size(3, 7), s.size(3, 7)]
    return s.tensor([s.size(1, 3), *shape] if s.chance(0.8) else shape, dtype, s.pick("normal", "small"))


def half(s, kernel):
    """A padding: at most half of the window."""
    return [s.r.randint(0, k // 2) for k in kernel]


def pair(s, least=0, most=3):
    return [s.r.randint(least, most), s.r.randint(least, most)]


@layer("GELU")
def _(s):
    o = {"approximate": s.pick("none", "tanh")}
    return o, lambda: nn.GELU(**o), [s.tensor(s.shape(), s.dtype(12, 1, 0))]


@layer("LeakyReLU")
def _(s):
    o = {"negative_slope": s.pick(0.01, 0.2)}
    return o, lambda: nn.LeakyReLU(**o), [s.tensor(s.shape(), s.dtype(12, 1, 0))]


@layer("Flatten")
def _(s):
    o = {"start_dim": s.pick(0, 1, -2), "end_dim": s.pick(-1, 2)}
    return o, lambda: nn.Flatten(**o), [s.any(1)]


@layer("Dropout")
def _(s):
    o = {"p": s.pick(0.0, 0.3, 1.0)}
    return o, lambda: nn.Dropout(**o), [s.float(s.shape())]


@layer("AdaptiveAvgPool2d", 16)
def _(s):
    o = {"output_size": pair(s, 1, 5)}
    return o, lambda: nn.AdaptiveAvgPool2d(o["output_size"]), [image(s, s.size(1, 3), s.dtype(1, 0, 0))]


@layer("AvgPool2d", 16)
def _(s):
    k = pair(s, 1)
    o = {"kernel_size": k, "stride": pair(s, 1), "padding": half(s, k), "ceil_mode": s.chance(0.3), "count_include_pad": s.chance(0.5)}
    return o, lambda: nn.AvgPool2d(**o), [image(s, s.size(1, 3), s.dtype(1, 0, 0))]


@layer("MaxPool2d")
def _(s):
    o = {"kernel_size": pair(s, 1), "stride": pair(s, 1), "padding": pair(s, 0, 1), "dilation": pair(s, 1, 2), "ceil_mode": s.chance(0.3)}
    return o, lambda: nn.MaxPool2d(**o), [image(s, s.size(1, 3), s.dtype(1, 0, 0))]


def batch_norm(s, kind, more):
    o = {"num_features": s.size(1), "eps": s.pick(1e-5, 1e-3), "momentum": s.pick(0.1, 0.5)}
    shape = [s.size(1), o["num_features"], *more]
    return o, lambda: kind(**o), [s.float(shape, s.pick("normal", "small"))]


@layer("BatchNorm1d", 16, True)
def _(s):
    return batch_norm(s, nn.BatchNorm1d, [s.size(1)] if s.chance(0.4) else [])


@layer("BatchNorm2d", 16, True)
def _(s):
    return batch_norm(s, nn.BatchNorm2d, [s.size(1, 4), s.size(1, 4)])


def conv(s, pairs):
    groups = s.pick(1, 1, 2)
    size = (lambda least, most: pair(s, least, most)) if pairs else (lambda least, most: s.r.randint(least, most))
    return {
        "in_channels": groups * s.r.randint(1, 3),
        "out_channels": groups * s.r.randint(1, 3),
        "kernel_size": size(1, 3),
        "stride": size(1, 3),
        "padding": size(0, 2),
        "dilation": size(1, 2),
        "groups": groups,
        "bias": s.chance(0.6),
    }


@layer("Conv1d", 16)
def _(s):
    o = conv(s, False)
    return o, lambda: nn.Conv1d(**o), [s.float([s.size(1, 3), o["in_channels"], s.size(1, 9)], "normal")]


@layer("Conv2d", 16)
def _(s):
    o = conv(s, True)
    return o, lambda: nn.Conv2d(**o), [image(s, o["in_channels"], s.dtype(1, 0, 0))]


@layer("ConvTranspose2d", 16)
def _(s):
    o = conv(s, True)
    o["padding"] = pair(s, 0, 1)
    o["output_padding"] = [s.r.randint(0, max(a, b) - 1) for a, b in zip(o["stride"], o["dilation"])]
    return o, lambda: nn.ConvTranspose2d(**o), [image(s, o["in_channels"], s.dtype(1, 0, 0))]


@layer("CrossEntropyLoss", 16)
def _(s):
    from calls import classified

    x, target, _, ignore = classified(s)
    o = {"ignore_index": ignore, "reduction": s.pick("mean", "sum", "none"), "label_smoothing": s.pick(0.0, 0.1)}
    return o, lambda: nn.CrossEntropyLoss(**o), [x, target]


@layer("MSELoss", 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    o = {"reduction": s.pick("mean", "sum", "none")}
    return o, lambda: nn.MSELoss(**o), [s.tensor(shape, dtype), s.tensor(shape, dtype)]


@layer("Embedding")
def _(s):
    from calls import places

    o = {"num_embeddings": s.size(1), "embedding_dim": s.size(1)}
    if s.chance(0.3):
        o["padding_idx"] = s.r.randrange(o["num_embeddings"])
    return o, lambda: nn.Embedding(**o), [places(s, s.shape(0, 3), o["num_embeddings"])]


@layer("GroupNorm", 16)
def _(s):
    groups = s.r.randint(1, 3)
    o = {"num_groups": groups, "num_channels": groups * s.r.randint(1, 3), "eps": s.pick(1e-5, 1e-3)}
    shape = [s.size(1), o["num_channels"]] + [s.size(1, 4) for _ in range(s.r.randint(0, 2))]
    return o, lambda: nn.GroupNorm(**o), [s.float(shape, s.pick("normal", "small"))]


@layer("LayerNorm", 16)
def _(s):
    shape = s.shape(1, 4)
    o = {"normalized_shape": shape[-s.r.randint(1, min(2, len(shape))) :], "eps": s.pick(1e-5, 1e-3)}
    return o, lambda: nn.LayerNorm(**o), [s.float(shape, s.pick("normal", "small"))]


@layer("RMSNorm", 16)
def _(s):
    shape = s.shape(1, 4)
    o = {"normalized_shape": shape[-s.r.randint(1, min(2, len(shape))) :], "eps": s.pick(1e-5, 1e-6)}
    return o, lambda: nn.RMSNorm(**o), [s.float(shape, s.pick("normal", "small"))]


def features(s):
    return {"in_features": s.size(1), "out_features": s.size(1)}


@layer("Linear", 16)
def _(s):
    o = features(s) | {"bias": s.chance(0.6)}
    return o, lambda: nn.Linear(**o), [s.float([*s.shape(0, 3)[:3], o["in_features"]], s.pick("normal", "small"))]


@layer("Sequential", 16)
def _(s):
    o = features(s)
    return o, lambda: nn.Sequential(nn.Linear(**o), nn.Tanh()), [s.float([s.size(1), o["in_features"]], "normal")]


class Int8(nn.Linear):
    """Weights rounded to 255 steps of each row's largest."""

    def forward(self, x):
        weight = self.weight.float()
        largest = weight.abs().amax(1).double()
        scale = torch.where(largest > 0, largest / 127, 1.0).float().to(self.stored)
        steps = (weight.double() / scale[:, None].double()).round().clamp(-127, 127)
        y = torch.nn.functional.linear(x, steps.to(x.dtype)) * scale.to(x.dtype)
        return y + self.bias


@layer("Int8Linear", 16)
def _(s):
    o = features(s)

    def make():
        made = Int8(**o)
        made.stored = torch.float32
        return made

    return o, make, [s.float([s.size(1), o["in_features"]], "normal")]


class Quantized(nn.Linear):
    """Weights and inputs in blocks of 32 bytes that share a scale: Q8_0."""

    @staticmethod
    def rounded(x, dtype):
        blocks = x.float().unflatten(-1, (-1, 32))
        scale = blocks.abs().amax(-1, keepdim=True) / 127
        steps = (blocks * torch.where(scale > 0, 1 / scale, 0.0)).round()
        return (steps.to(dtype) * scale.half().to(dtype)).flatten(-2)

    def forward(self, x):
        return self.rounded(x, x.dtype) @ self.rounded(self.weight, x.dtype).T + self.bias


@layer("QuantizedLinear", 64)
def _(s):
    o = {"in_features": 32 * s.size(1, 3), "out_features": s.size(1, 4)}
    return o, lambda: Quantized(**o), [s.float([*s.shape()[:2], o["in_features"]], "normal", "float32")]


class Lora(nn.Module):
    def __init__(self, in_features, out_features, rank, scale):
        super().__init__()
        self.base = nn.Linear(in_features, out_features)
        self.lora_a = nn.Parameter(torch.zeros(rank, in_features))
        self.lora_b = nn.Parameter(torch.zeros(out_features, rank))
        self.scale = scale

    def forward(self, x):
        return self.base(x) + (x @ self.lora_a.T) @ self.lora_b.T * self.scale


@layer("LoraLinear", 16)
def _(s):
    o = features(s) | {"scale": s.pick(0.5, 1.0)}
    o["rank"] = s.r.randint(1, min(o["in_features"], o["out_features"]))
    return o, lambda: Lora(**o), [s.float([s.size(1), o["in_features"]], "normal")]


@layer("LSTM", 16)
def _(s):
    o = {"input_size": s.size(1, 4), "hidden_size": s.size(1, 3), "num_layers": s.r.randint(1, 2), "bias": s.chance(0.7), "batch_first": s.chance(0.5), "bidirectional": s.chance(0.4)}
    batch, length, dtype = s.size(1, 3), s.size(1, 4), s.dtype(1, 0, 0)
    first = [batch, length] if o["batch_first"] else [length, batch]
    args = [s.float([*first, o["input_size"]], "normal", dtype)]
    if s.chance(0.5):
        states = [o["num_layers"] * (2 if o["bidirectional"] else 1), batch, o["hidden_size"]]
        args.append([s.float(states, "normal", dtype), s.float(states, "normal", dtype)])
    else:
        args.append(None)
    return o, lambda: nn.LSTM(**o), args


class Attention(nn.MultiheadAttention):
    """Gives an empty tensor instead of nothing where no weights are needed."""

    def forward(self, q, k, v, key_padding_mask, need_weights, attn_mask):
        y, weights = super().forward(q, k, v, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask)
        return y, weights if weights is not None else torch.zeros(0, dtype=y.dtype)


@layer("MultiheadAttention", 16)
def _(s):
    heads = s.r.randint(1, 3)
    o = {"embed_dim": heads * s.r.randint(1, 3), "num_heads": heads, "batch_first": s.chance(0.5)}
    batch, length, keys, dtype = s.size(1, 3), s.size(1, 4), s.size(1, 4), s.dtype(1, 0, 0)

    def sequence(n):
        return s.float([batch, n, o["embed_dim"]] if o["batch_first"] else [n, batch, o["embed_dim"]], "normal", dtype)

    key = sequence(keys)
    padding = None
    if s.chance(0.3):
        mask = s.dense([batch, keys], "bool")
        mask[:, 0] = False
        padding = T(mask)
    mask = s.float([length, keys], "normal", dtype) if s.chance(0.3) and padding is None else None
    return o, lambda: Attention(**o), [sequence(length), key, sequence(keys), padding, s.chance(0.5), mask]


@layer("Upsample", 16)
def _(s):
    mode = s.pick(*MODES)
    x, rank = pictures(s, mode)
    sized = s.chance(0.4)
    o = {"size" if sized else "scale_factor": resized(s, rank, sized), "mode": mode}
    if mode in ("linear", "bilinear", "bicubic", "trilinear") and s.chance(0.6):
        o["align_corners"] = s.chance(0.5)
    return o, lambda: nn.Upsample(**upsampled(o)), [x]


def upsampled(o):
    """The options as PyTorch takes them: tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in o.items()}


@layer("UpsamplingNearest2d", 16)
def _(s):
    x, rank = pictures(s, "bilinear")
    sized = s.chance(0.4)
    o = {"size" if sized else "scale_factor": resized(s, rank, sized)}
    return o, lambda: nn.UpsamplingNearest2d(**upsampled(o)), [x]


@layer("UpsamplingBilinear2d", 16)
def _(s):
    x, rank = pictures(s, "bilinear")
    sized = s.chance(0.4)
    o = {"size" if sized else "scale_factor": resized(s, rank, sized)}
    return o, lambda: nn.UpsamplingBilinear2d(**upsampled(o)), [x]


def filled(s, module, dtype):
    """The module in the type, with random weights."""
    module = module.to(DTYPES[dtype])
    state = {}
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            data = s.dense(list(value.shape), dtype, "normal")
            state[name] = data.abs() + 0.25 if name.endswith("running_var") else data
        else:
            state[name] = value
    module.load_state_dict(state)
    if isinstance(module, Int8):
        module.stored = DTYPES[dtype]
    return module


# The generators of the other file go into the same table.
import structure_layers  # noqa: E402, F401
