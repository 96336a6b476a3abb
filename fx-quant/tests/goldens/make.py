"""Writes `observers.json`, `nets.json` and `dynamic.json`: what torch.ao.quantization of torch 2.15 gives, which later versions delete.

    python fx-quant/tests/goldens/make.py

Numbers are drawn by a formula that the Rust tests have too, so that the files hold results alone.
"""

import json
import math
import pathlib
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")

from torch.ao.quantization import (  # noqa: E402
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    PerChannelMinMaxObserver,
    QConfig,
    QConfigMapping,
)
from torch.ao.quantization.quantize_fx import convert_to_reference_fx, prepare_fx  # noqa: E402

HERE = pathlib.Path(__file__).parent


class Draw:
    """Numbers in [-1, 1), each a float32 without rounding: Knuth's generator."""

    def __init__(self, seed):
        self.state = seed

    def one(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**23 - 1.0

    def tensor(self, shape, power=1, scale=1.0, shift=0.0):
        """Numbers raised to an odd power, scaled and shifted in float64."""
        numbers = [self.one() ** power * scale + shift for _ in range(math.prod(shape))]
        return torch.tensor(numbers, dtype=torch.float64).to(torch.float32).reshape(shape)


def tensors():
    """40 groups of three tensors each: of several spreads, one-sided, far from 0, with outliers, and constant."""
    for case in range(40):
        draw = Draw(case + 1)
        power = [1, 3, 5, 9][case % 4]
        scale = [1.0, 0.01, 30.0, 1000.0, 5.0][case % 5]
        shift = [0.0, 0.0, 1.5, -3.0][case // 4 % 4] * scale
        count = [64, 500, 3000][case % 3]
        yield case, [draw.tensor([4, count // 4], power, scale * (1 + at), shift) for at in range(3)]


def observers():
    schemes = {
        "uint8": dict(dtype=torch.quint8, qscheme=torch.per_tensor_affine),
        "uint7": dict(dtype=torch.quint8, qscheme=torch.per_tensor_affine, quant_min=0, quant_max=127),
        "int8": dict(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
    }
    lines = []
    for case, group in tensors():
        for scheme, options in schemes.items():
            for name, kind in {
                "min_max": MinMaxObserver,
                "moving_average": MovingAverageMinMaxObserver,
                "histogram": HistogramObserver,
            }.items():
                observer = kind(**options)
                for tensor in group:
                    observer(tensor)
                scale, zero = observer.calculate_qparams()
                lines.append([case, scheme, name, [scale.item()], [zero.item()]])
        observer = PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
        observer(group[0])
        scale, zero = observer.calculate_qparams()
        lines.append([case, "int8", "per_channel", scale.tolist(), zero.tolist()])
    (HERE / "observers.json").write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    print(f"observers: {len(lines)} lines")


class Convolutions(nn.Module):
    """A sum of two ways, a convolution of each channel alone, and a pool."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        y = F.relu(self.conv1(x))
        z = F.relu(self.conv2(y) + y)
        return self.fc(torch.flatten(self.pool(z), 1))


class Products(nn.Module):
    """Layers one after another, and a product with a sigmoid, which stays in floats."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(24, 32)
        self.b = nn.Linear(32, 32)
        self.c = nn.Linear(32, 6, bias=False)

    def forward(self, x):
        y = F.relu(self.a(x))
        return self.c(F.relu(self.b(y)) + y)


class Strided(nn.Module):
    """Strides and dilations, windows over the edge, and a residual of another kernel."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 6, 5, stride=2, padding=2)
        self.wide = nn.Conv2d(6, 6, 3, padding=2, dilation=2)
        self.down = nn.Conv2d(6, 6, 1)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.fc = nn.Linear(96, 5)

    def forward(self, x):
        y = F.relu(self.stem(x))
        y = F.relu(self.wide(y) + self.down(y))
        return self.fc(torch.flatten(self.pool(y), 1))


NETS = {"convolutions": (Convolutions, [2, 3, 8, 8]), "products": (Products, [8, 24]), "strided": (Strided, [2, 2, 16, 16])}


def filled(module, draw):
    """Parameters by the formula, in the order of the modules."""
    for parameter in module.parameters():
        fan = math.prod(parameter.shape[1:]) if parameter.dim() > 1 else 4
        with torch.no_grad():
            parameter.copy_(draw.tensor(list(parameter.shape), 1, 1.5 / math.sqrt(fan)))
    return module.eval()


def nets():
    results = {}
    for name, (kind, shape) in NETS.items():
        draw = Draw(len(name))
        module = filled(kind(), draw)
        weight = PerChannelMinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
        config = QConfig(activation=HistogramObserver.with_args(), weight=weight)
        inputs = [draw.tensor(shape, 3, 2.0) for _ in range(4)]
        prepared = prepare_fx(module, QConfigMapping().set_global(config), (inputs[0],))
        for x in inputs:
            prepared(x)
        reference = convert_to_reference_fx(prepared)
        values = []

        class Watch(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                result = super().call_function(target, args, kwargs)
                if target is torch.quantize_per_tensor:
                    whole = result.int_repr()
                    value = [result.q_scale(), result.q_zero_point(), bytes(whole.flatten().tolist()).hex()]
                    values.append(value)
                return result

        y = Watch(reference).run(inputs[0])
        results[name] = {"values": values, "result": y.flatten().tolist(), "float": module(inputs[0]).flatten().tolist()}
    (HERE / "nets.json").write_text(json.dumps(results, indent=0) + "\n")
    print(f"nets: {len(results)}")


def dynamic():
    """Three layers whose inputs each run rounds by their own range, for inputs of several ranges."""
    draw = Draw(7)
    module = filled(Products(), draw)

    def linear(layer, x):
        observer = PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
        observer(layer.weight)
        scale, zero = observer.calculate_qparams()
        weight = torch.quantize_per_channel(layer.weight.detach(), scale, zero, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(weight, layer.bias)
        return torch.ops.quantized.linear_dynamic(x, packed, False)

    results = []
    for scale, shift in [(1.0, 0.0), (0.01, 0.0), (1000.0, 0.0), (2.0, 5.0), (2.0, -5.0)]:
        x = draw.tensor([8, 24], 3, scale, shift)
        y = F.relu(linear(module.a, x))
        y = linear(module.c, F.relu(linear(module.b, y)) + y)
        results.append({"scale": scale, "shift": shift, "result": y.flatten().tolist()})
    (HERE / "dynamic.json").write_text(json.dumps(results, indent=0) + "\n")
    print(f"dynamic: {len(results)}")


if __name__ == "__main__":
    assert torch.__version__.startswith("2.15"), f"the goldens are of torch 2.15, not {torch.__version__}"
    observers()
    nets()
    dynamic()
