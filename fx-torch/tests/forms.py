"""Forms of exported programs, small modules of each, with PyTorch's results at two sizes, for `examples/forms.rs`.

    python fx-torch/tests/forms.py DIR [--only PART] [--recorded]

writes DIR/NAME.pt2, DIR/NAME_0.npz and DIR/NAME_1.npz: `in_00`, .. and `out_00`, .. (tensors and numbers), `types` (the element
types of the results by PyTorch's numbers), and what a run has written: `after_in_00` and `after_buffer:PATH`. Each run has a fresh
copy of the module. Each module is written as exported, after `run_decompositions()` (NAME.core), and some in `train()` too
(NAME.train). A form that torch.export itself refuses is left out. `--recorded` writes those of tests/data/forms alone. Needs torch; nothing is
downloaded.
"""

import collections
import copy
import dataclasses
import inspect
import logging
import math
import pathlib
import sys
import typing
import warnings

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
import torch.utils._pytree as pytree
from torch import nn
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from models import common

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
OPEN = torch.export.Dim.DYNAMIC
FORMS = {}
# What the tests run.
RECORDED = """buffer_cache buffer_counted cond_size data_item input_nested input_returned map_outside norm_rows norm_rows.train
    region_gradients scan_state tree_classes view_parts weight_written.core while_count""".split()


def f(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes) + seed))


def ints(high, *sizes, seed=0):
    return torch.randint(0, high, sizes, generator=torch.Generator().manual_seed(sum(sizes) + seed))


@dataclasses.dataclass
class Form:
    make: typing.Callable
    inputs: typing.Callable
    dims: typing.Any
    sizes: typing.Sequence
    train: bool = False
    core: bool = True
    numbers: bool = False


def form(name, inputs, dims, *sizes, **options):
    """Decorates a module class, or a function that is the `forward` of one without parts."""

    def add(what):
        FORMS[name] = Form(what if isinstance(what, type) else lambda: plain(what), inputs, dims, sizes, **options)
        return what

    return add


def plain(function):
    """A module whose `forward` is a function."""

    def forward(self, *args, **kwargs):
        return function(*args, **kwargs)

    own = inspect.signature(function)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = own.replace(parameters=[this, *own.parameters.values()])
    return type("Plain", (nn.Module,), {"forward": forward})()


def on_x(name, *sizes, **options):
    """A form that takes one matrix."""
    return form(name, lambda n, m: (f(n, m),), ({0: OPEN, 1: OPEN},), *(sizes or ((4, 5), (3, 6))), **options)


def on_rows(name, *sizes, **options):
    """A form that takes a matrix with an open number of rows."""
    return form(name, lambda n, m: (f(n, m),), ({0: OPEN},), *(sizes or ((4, 5), (6, 5))), **options)


# Branches


@form("cond_closure", lambda n, sign: (f(n, 3) + sign,), ({0: OPEN},), (4, 2), (5, -2))
class CondClosure(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.w = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.fc(x) * self.w, lambda x: x - self.w, (x,))


@form("cond_nested", lambda n, sign: (f(n, 3) + sign, f(3)), ({0: OPEN}, None), (4, 2), (5, -2))
class CondNested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, y):
        def inner(x, y):
            return torch.cond(y.sum() > 0, lambda x, y: self.a(x) + y, lambda x, y: self.b(x) - y, (x, y))

        return torch.cond(x.mean() > 0, inner, lambda x, y: self.c(x) * y, (x, y))


@form("cond_several", lambda n, flag: (f(n, 3), torch.tensor(bool(flag))), ({0: OPEN}, None), (4, 1), (5, 0))
def cond_several(x, flag):
    def yes(x):
        y = x * 2
        y[0] = 1.0
        return y, x.sum(), x.argmax(-1)

    return torch.cond(flag, yes, lambda x: (x.clone(), x.sum() * 0, x.argmin(-1)), (x,))


@form("cond_size", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (7,))
def cond_size(x):
    return torch.cond(x.shape[0] > 5, lambda x: x + 1, lambda x: x * 2, (x,))


@form("cond_buffer", lambda n, step: (f(n, 3), torch.tensor(step)), ({0: OPEN}, None), (4, 0), (5, 3))
class CondBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("least", torch.tensor(2))
        self.norm = nn.LayerNorm(3)

    def forward(self, x, step):
        return torch.cond(step >= self.least, lambda x: self.norm(x), lambda x: x.relu(), (x,)) + 1


# Loops


@form("while_count", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (6,))
def while_count(x):
    return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 1.5 + i), (torch.tensor(0), x))


@form("while_closure", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (5,))
class WhileClosure(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("most", torch.tensor(5.0))

    def forward(self, x):
        def body(x, turns):
            return torch.tanh(self.fc(x)) + x, turns + 1

        return while_loop(lambda x, turns: (x.abs().sum() < self.most) & (turns < 20), body, (x * 0.01, torch.tensor(0)))


@form("while_never", lambda n: (f(n, 3), torch.tensor(0)), ({0: OPEN}, None), (4,), (5,))
def while_never(x, turns):
    return while_loop(lambda x, t: t > 0, lambda x, t: (x + 1, t - 1), (x, turns))


@form("while_cond", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (5,))
def while_cond(x):
    def body(i, x):
        y = torch.cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 0.5, (x,))
        return i + 1, y

    return while_loop(lambda i, x: i < 5, body, (torch.tensor(0), x))


@form("scan_state", lambda t, b: (f(b, 3), f(t, b, 3)), ({0: OPEN}, {0: OPEN, 1: OPEN}), (5, 2), (3, 4))
class ScanState(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, h, xs):
        def step(h, x):
            h = torch.tanh(self.fc(h) + x)
            return h, h * 2

        return scan(step, h, xs, dim=0)


@form("scan_reverse", lambda t, b: (f(b, 3), f(b, t, 3)), ({0: OPEN}, {0: OPEN, 1: OPEN}), (5, 2), (3, 4))
def scan_reverse(h, xs):
    return scan(lambda h, x: (h * 0.5 + x, h.sum(-1)), h, xs, dim=1, reverse=True)


@form("scan_tree", lambda t: ((f(2), f(2, seed=1)), {"a": f(t, 2), "b": f(t, 2, seed=1)}), None, (5,), (5,))
def scan_tree(state, xs):
    def step(state, x):
        a, b = state
        return (a + x["a"], b * 0.9 + a), {"sum": a + b, "x": x["b"].clone()}

    return scan(step, state, xs)


@form("map_outside", lambda n: (f(n, 3), f(3)), ({0: OPEN}, None), (4,), (6,))
class MapOutside(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, xs, y):
        return map_over(lambda x, y: (self.fc(x + y), x.cos() * y), xs, y)


@form("map_nested", lambda n: (f(n, 3, 2),), ({0: OPEN},), (4,), (6,))
def map_nested(xs):
    return map_over(lambda x: map_over(lambda row: row.softmax(0), x), xs)


@form("map_cond", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (6,))
def map_cond(xs):
    return map_over(lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), xs)


@form("cond_shapes", lambda n, sign: (f(n, 3, 1) + sign,), ({0: OPEN},), (4, 2), (5, -2))
class CondShapes(nn.Module):
    """Operators in branches that ask for the number of dims."""

    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.LayerNorm(3), nn.Conv1d(3, 2, 1)
        self.bn = nn.BatchNorm1d(3)
        self.register_buffer("at", torch.tensor([0, -1]))

    def forward(self, x):
        def yes(x):
            y = x.squeeze()
            y = self.norm(y)[..., -2:]
            return y.mT.flip(0).mT.contiguous(), x[:, self.at].squeeze(), self.conv(x).flatten(1)

        def no(x):
            y = self.bn(x).squeeze(-1)[:, self.at].softmax(-1)
            return y * 2, x.squeeze(-1)[:, self.at] * 3, x.sum(1).repeat(1, 2)

        return torch.cond(x.sum() > 0, yes, no, (x,))


@form("cond_sizes", lambda n, sign: (f(n, 3) + sign,), ({0: OPEN},), (4, 2), (5, -2))
def cond_sizes(x):
    n = x.shape[0]
    return torch.cond(x.sum() > 0, lambda x: x * n + torch.ones(n, 1), lambda x: x / (n + 1), (x,))


@form("scan_layers", lambda t, b: (f(b, 4), f(t, b, 4, 6)), ({0: OPEN}, {0: OPEN, 1: OPEN}), (5, 2), (3, 4))
class ScanLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(4, 4, 3, padding=1), nn.LayerNorm(4)

    def forward(self, h, xs):
        def step(h, x):
            y = self.conv(x).max(-1).values
            h = self.norm(h + y)
            h[:, 0] = 1.0
            return h, h.sum(-1)

        return scan(step, h, xs)


@form("loop_decoder", lambda b: (ints(9, b, 1),), ({0: OPEN},), (2,), (3,))
class LoopDecoder(nn.Module):
    """Greedy decoding: a loop that writes into what it carries."""

    def __init__(self):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(9, 4), nn.GRUCell(4, 4), nn.Linear(4, 9)

    def forward(self, first):
        tokens = torch.zeros(first.shape[0], 6, dtype=torch.int64)
        state = torch.zeros(first.shape[0], 4)

        def body(at, token, state, tokens):
            state = self.cell(self.emb(token[:, 0]), state)
            token = self.out(state).argmax(-1, keepdim=True)
            tokens = tokens.scatter(1, at.expand(token.shape[0], 1), token)
            return at + 1, token, state, tokens

        done = while_loop(lambda at, token, state, tokens: at < 6, body, (torch.tensor(0), first, state, tokens))
        return done[3], done[2]


# Sizes that a run decides


@on_x("data_nonzero")
def data_nonzero(x):
    places = (x > 0).nonzero()
    return places, places.sum(0), x[x > 0], torch.masked_select(x, x < 0).sum()


@form("data_item", lambda n, k: (f(n), torch.tensor(k)), ({0: OPEN}, None), (6, 2), (5, 4))
def data_item(x, k):
    n = k.item()
    torch._check(n >= 0)
    torch._check(n <= 4)
    return torch.ones(n), x * n, torch.arange(n) + n, x.new_full((n, 2), 3.0)


@form("data_slice", lambda n, k: (f(n, 3), torch.tensor(k)), ({0: OPEN}, None), (8, 2), (9, 4))
def data_slice(x, k):
    n = k.item()
    torch._check(n >= 1)
    torch._check(n < x.shape[0])
    return x[:n], x.narrow(0, n, 1), x[n]


@on_rows("data_numbers")
def data_numbers(x):
    most = x.max().item()
    return x / most, most, x.argmax().item()


@form("data_split", lambda n, k: (f(n), torch.tensor([k, n - k])), ({0: OPEN}, None), (8, 2), (9, 4))
def data_split(x, sizes):
    a, b = sizes.tolist()
    torch._check(a >= 0)
    torch._check(b >= 0)
    torch._check(a + b == x.shape[0])
    left, right = x.split([a, b])
    return left * 2, right + 1


@form("data_unique", lambda n: (ints(4, n),), ({0: OPEN},), (8,), (11,))
def data_unique(x):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    return values, inverse, counts


@form("data_repeat", lambda n: (f(n, 2), ints(3, n)), ({0: OPEN}, {0: OPEN}), (4,), (5,))
def data_repeat(x, repeats):
    return torch.repeat_interleave(x, repeats, dim=0), torch.bincount(repeats, minlength=3)


# Inputs that a run writes


@on_x("input_added")
def input_added(x):
    x.add_(1)
    return x * 2


@on_x("input_views")
def input_views(x):
    x[0].mul_(2)
    x[:, 1:3] = 7.0
    x.t()[0].add_(x.sum())
    return x.sum(0)


@on_x("input_returned")
def input_returned(x):
    old = x.clone()
    y = x.relu_()
    y.mul_(2)
    return old, y, x


@form("input_swapped", lambda n: (f(n, 2), f(n, 2, seed=1)), ({0: OPEN}, {0: OPEN}), (4,), (5,))
def input_swapped(a, b):
    old = a.clone()
    a.copy_(b)
    b.copy_(old)
    return a - b


@form("input_nested", lambda n: ({"h": [f(n, 2), f(n, 3)]}, f(n)), {"state": {"h": [{0: OPEN}, {0: OPEN}]}, "x": {0: OPEN}}, (4,), (5,))
class InputNested(nn.Module):
    def forward(self, state, x):
        state["h"][0][:, 0] = x
        state["h"][1].mul_(x[:, None])
        return state["h"][0].sum()


# Buffers that a run writes


@on_rows("buffer_counted", (4, 2), (5, 2))
class BufferCounted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(2, dtype=torch.bool))
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        old = self.mean.clone()
        self.calls += 1
        self.seen |= (x > 1).any(0)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean, old, self.calls + 1, self.mean


@form("buffer_cache", lambda n, at: (f(2, n, 4), torch.arange(at, at + n)), ({1: OPEN}, {0: OPEN}), (3, 0), (2, 4))
class BufferCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 8, 4))
        self.register_buffer("v", torch.zeros(2, 8, 4))
        self.proj = nn.Linear(4, 8)

    def forward(self, x, at):
        k, v = self.proj(x).chunk(2, -1)
        self.k[:, at] = k
        self.v.index_copy_(1, at, v)
        return x @ self.k.transpose(1, 2) @ self.v


@form("buffer_slices", lambda n: (f(n, 3),), ({0: OPEN},), (3,), (4,))
class BufferSlices(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(6, 3))
        self.caches = nn.ModuleList(nn.Module() for _ in range(2))
        for at, part in enumerate(self.caches):
            part.register_buffer("kept", torch.zeros(2, 3) + at)

    def forward(self, x):
        self.cache[: x.shape[0]] = x
        self.cache.narrow(0, 5, 1).copy_(x[:1])
        self.cache[1:6:2] *= 2
        for part in self.caches:
            part.kept[0].copy_(x[-1])
            part.kept.view(-1)[4:].zero_()
        return self.cache + 1, self.caches[1].kept.sum(0)


@on_rows("buffer_swapped", (4, 2), (5, 2))
class BufferSwapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(2))
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        old = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(old + x.sum(0))
        return old, self.a.view(1, 2), self.b[None] + x


@on_rows("buffer_assigned", (4, 2), (5, 2))
class BufferAssigned(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2))
        self.register_buffer("scale", torch.ones(2), persistent=False)

    def forward(self, x):
        self.last = x[-1] * self.scale
        self.scale = self.scale * 0.5
        return x + self.last


@form("norm_batch", lambda n: (f(n, 3, 5, 4),), ({0: OPEN},), (4,), (6,), train=True)
class NormBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.plain = nn.BatchNorm2d(4, affine=False, momentum=0.3)
        self.batch = nn.BatchNorm2d(4, track_running_stats=False)

    def forward(self, x):
        x = self.bn(self.conv(x)).relu()
        return self.batch(self.plain(self.bn(x)))


@form("norm_rows", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (6,), train=True)
class NormRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(x), self.bn.running_mean * 2


@form("norm_instance", lambda n: (f(n, 3, 6),), ({0: OPEN},), (4,), (6,), train=True)
class NormInstance(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
        self.other, self.group = nn.InstanceNorm1d(3), nn.GroupNorm(3, 3)

    def forward(self, x):
        return self.group(self.other(self.norm(x) * 2))


@form("dropout", lambda n: (f(n, 3),), ({0: OPEN},), (4,), (6,), train=True)
class Dropout(nn.Module):
    """Random in training: listed there, and not compared."""

    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        return F.dropout(self.drop(self.fc(x)), 0.2, self.training)


@form("encoder", lambda n: (f(n, 5, 8),), ({0: OPEN},), (2,), (3,), train=True)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.all = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.all(x)


# Views that are written


@on_x("view_orders")
def view_orders(x):
    y = x * 1
    y.t().select(0, 1).fill_(3.0)
    y.transpose(0, 1)[1:].mul_(2)
    y.permute(1, 0).unsqueeze(0).squeeze(0)[0].sub_(1)
    y.mT[-1] = 0.5
    y.swapaxes(0, 1).movedim(0, 1)[0].neg_()
    return y


@on_x("view_shapes")
def view_shapes(x):
    y = x * 1
    y.view(-1)[3:5].zero_()
    y.unsqueeze(1)[:, :, 1:2].exp_()
    y.flatten().add_(0.5)
    y.reshape(1, *y.shape).squeeze(0).clamp_(min=-0.5)
    y.unflatten(0, (1, -1))[0, 0].mul_(3)
    y.view_as(x)[..., -1].sigmoid_()
    return y, y.sum()


@form("view_parts", lambda n: (f(n, 6),), ({0: OPEN},), (4,), (5,), core=False)
def view_parts(x):
    y = x * 1
    a, b = y.chunk(2, 1)
    b.add_(a)
    for at, part in enumerate(y.split(2, 1)):
        part.mul_(at + 1)
    c, _, d = y.split([1, 2, 3], 1)
    d.sub_(c)
    columns = y.unbind(1)
    columns[2].fill_(0.25)
    y.tensor_split(3, 1)[1].neg_()
    y[:, ::2].add_(1)
    return y, a, d, columns[5]


@form("view_diagonal", lambda n: (f(n, 4, 4),), ({0: OPEN},), (2,), (3,))
def view_diagonal(x):
    y = x * 1
    y.diagonal(dim1=-2, dim2=-1).add_(1)
    y[:, 1:, 2:].diagonal(dim1=1, dim2=2).fill_(9.0)
    return y


@on_x("view_strided")
def view_strided(x):
    y = x.contiguous() * 1
    y.as_strided((2,), (1,)).zero_()
    return y


@on_x("view_expanded")
def view_expanded(x):
    return x.sum(0).expand(3, -1).clone().add_(1), x.unfold(1, 2, 1) + 1


@on_x("view_masked")
def view_masked(x):
    y = x * 1
    y[y > 0.5] = 0.5
    y[y < -1] *= 2
    y.masked_fill_(y.abs() < 0.1, 4.0)
    y[0, torch.tensor([0, 2])] += 1
    y[torch.tensor([[0], [1]]), torch.tensor([1, 3])] = 8.0
    y[..., None][:, 0] = 3.0
    y.index_fill_(1, torch.tensor([4]), -1.0)
    y.scatter_(1, torch.zeros(1, 1, dtype=torch.int64), 6.0)
    y.index_add_(0, torch.tensor([1]), torch.ones(1, x.shape[1]))
    return y


@on_x("places_of_comparisons")
def places_of_comparisons(x):
    a, b, c = x.clone(), x.clone(), x.clone()
    mask = x > 0
    mask.logical_and_(x < 1)
    mask &= x.abs() > 0.1
    return a.eq_(x), b.lt_(0.0), c.logical_not_(), mask, x.clone().logical_or_(mask), mask.clone().mul_(True)


@form("view_copied", lambda n: (f(n, 3), f(2 * n)), ({0: OPEN}, {0: OPEN}), (4,), (5,))
def view_copied(x, z):
    """What may be a view is one as PyTorch decides it."""
    y = x * 1
    copied, viewed = y.t().reshape(-1), y.reshape(-1)
    copied.add_(1)
    viewed[0] = 9.0
    same, wide = y.to(torch.float32), y.to(torch.float64)
    same.mul_(2)
    wide.zero_()
    ordered = y.t().contiguous()
    ordered.fill_(3.0)
    whole = y.contiguous()
    whole[1].neg_()
    parts = (z * 1).view(2, -1).t().reshape(-1, 1, 2)
    parts[0].zero_()
    dropped = F.dropout(y, 0.5, False)
    dropped[-1] = 0.5
    return y, copied, viewed, same, wide, ordered, whole, parts, dropped.flatten(), z


# Weights


@on_rows("weight_written", (4, 5), (6, 5))
class WeightWritten(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x):
        before = self.fc(x)
        with torch.no_grad():
            self.fc.weight.mul_(0.5)
            self.out.bias[0] = x.sum()
        return before + self.fc(x), self.out(x)


@on_rows("weight_shared")
class WeightShared(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.randn(5, 4)
        self.a = nn.Parameter(base.t())
        self.b = nn.Parameter(torch.randn(8, 5)[::2])
        self.register_buffer("wide", torch.ones(1, 4).expand(3, 4))
        whole = torch.randn(10)
        self.register_buffer("left", whole[:4])
        self.register_buffer("right", whole[6:])
        self.register_buffer("number", torch.tensor(2.5))
        self.register_buffer("none", torch.zeros(0, 4))

    def forward(self, x):
        y = F.linear(x, self.a) + F.linear(x, self.b)
        return torch.cat([y * self.left + self.right, self.wide * self.number, self.none])


@on_rows("weight_tied", (4, 5), (6, 5))
class WeightTied(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.back = nn.Linear(5, 5), nn.Linear(5, 5)
        self.back.weight = self.fc.weight
        self.again = self.fc
        self.register_buffer("mask", torch.ones(5))
        self.other = nn.Module()
        self.other.register_buffer("mask", self.mask)

    def forward(self, x):
        return self.back(self.fc(x)) @ self.fc.weight.t() + self.again(x) * self.other.mask * self.mask


@on_rows("weight_lists", (4, 5), (6, 5))
class WeightLists(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([torch.ones(5), torch.ones(5)])
        self.named = nn.ParameterDict({"into": torch.ones(5, 5), "out": torch.ones(5)})
        block = lambda: nn.ModuleList([nn.ModuleDict({"fc": nn.Linear(5, 5)}), nn.Sequential(nn.ReLU(), nn.LayerNorm(5))])
        self.blocks = nn.ModuleList([block(), block()])

    def forward(self, x):
        for scale, (a, b) in zip(self.scales, self.blocks):
            x = b(a["fc"](x)) * scale
        return x @ self.named["into"] + self.named["out"]


@on_rows("called_twice", (4, 5), (6, 5), train=True)
class CalledTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5))

    def forward(self, x):
        return self.fc(self.fc(x) + x)


@on_rows("constants", (4, 2), (6, 2))
class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.tensor([1.0, 2.0])
        self.several = [torch.tensor(3), torch.tensor([True, False])]

    def forward(self, x):
        lifted = torch.tensor([[0.5], [0.25]]) + torch.tensor(1e-3, dtype=torch.float64)
        return x * self.plain + self.several[0], torch.where(self.several[1], x, 0.0), lifted, x.new_tensor([1, 2]), 7, 2.5, True, "text", None


# Structures


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: typing.Optional[torch.Tensor] = None


Point = collections.namedtuple("Point", ["x", "y"])
torch.export.register_dataclass(Pair, serialized_type_name="forms.Pair")
pytree._register_namedtuple(Point, serialized_type_name="forms.Point")


@form("tree_dataclass", lambda n: (Pair(f(n, 2), f(n, 2)), Pair(f(n))), None, (4,), (4,))
def tree_dataclass(pair, one):
    return Pair(pair.left + pair.right, one.left * 2)


@form(
    "tree_classes",
    lambda n: (Point(f(n), f(n)), collections.OrderedDict(b=f(n), a=[f(n), (f(n),)])),
    {"point": Point({0: OPEN}, {0: OPEN}), "named": {"b": {0: OPEN}, "a": [{0: OPEN}, ({0: OPEN},)]}},
    (4,),
    (5,),
)
class TreeClasses(nn.Module):
    def forward(self, point, named):
        z = collections.OrderedDict(z=point.x + named["a"][0], y=[named["b"]])
        return Point(point.y * 2, z), {"deep": {"er": (named["a"][1][0] + 1, None)}}


@form(
    "tree_keywords",
    lambda n: {"x": f(n), "scale": 2.0, "flag": True, "mode": "double", "count": 3, "bias": None, "extra": {"k": f(n)}},
    {"x": {0: OPEN}, "scale": None, "flag": None, "mode": None, "count": None, "bias": None, "extra": {"k": {0: OPEN}}},
    (4,),
    (5,),
)
class TreeKeywords(nn.Module):
    def forward(self, x, scale=1.0, *, flag=False, mode="single", count=1, bias=None, extra=None, **others):
        y = x * scale + count
        if flag and mode == "double":
            y = y * 2
        return {"y": y + extra["k"], "none": bias}


@form("tree_variadic", lambda n: (f(n), f(n, seed=1), f(n, seed=2)), {"args": ({0: OPEN}, {0: OPEN}, {0: OPEN})}, (4,), (5,))
class TreeVariadic(nn.Module):
    def forward(self, *args):
        return sum(args), list(args[::-1])


@form("tree_number", lambda n, k: (f(n), k), ({0: OPEN}, OPEN), (4, 3), (5, 6), numbers=True)
def tree_number(x, k):
    return x * k, torch.ones(k + 1), k * 2


# Arithmetic on sizes


@on_x("size_integers", (6, 8), (4, 12))
def size_integers(x):
    n, m = x.shape
    made = [n + m, n * m - 2, m // 2, m % 4 + 1, (n * m) // 3, -n + 20, n**2, (n + 1) // 2 + n % 3]
    return [torch.ones(k) for k in made], x.numel() * 2, x + n, x.view(m, n), x.reshape(-1, 2)


@on_x("size_extremes", (6, 8), (9, 4))
def size_extremes(x):
    n, m = x.shape
    return torch.ones(torch.sym_max(n, m)), x * torch.sym_min(n, 7), torch.zeros(torch.sym_max(n, 3) + torch.sym_min(m, n))


@on_x("size_floats", (6, 8), (9, 4))
def size_floats(x):
    n, m = x.shape
    scale = 1 / torch._sym_sqrt(m)
    half = torch.sym_float(n) / 2
    return x * scale, x + half, x * (n / m), x + torch.sym_int(n * 0.5), x * m**-0.5


@on_x("size_rounded", (6, 8), (9, 7))
def size_rounded(x):
    n, m = x.shape
    return torch.ones(-(-n // 2)), torch.ones(m // 3), torch.ones(math.trunc(n * 1.5))


@on_x("size_truth", (6, 8), (9, 4))
def size_truth(x):
    n, m = x.shape
    is_wide = torch.sym_not(n > m)
    return torch.cond(is_wide, lambda x: x + 1, lambda x: x - 1, (x,)), x * torch.sym_ite(n > m, n, m)


@form("size_checked", lambda n: (f(n), f(2 * n)), ({0: torch.export.Dim("n", min=4, max=50)}, {0: 2 * torch.export.Dim("n", min=4, max=50)}), (4,), (6,))
def size_checked(x, y):
    torch._check(x.shape[0] > 3)
    torch._check(x.shape[0] * 2 == y.shape[0])
    torch._assert_async((x < 100).all())
    torch._assert_async((y < 100).all(), "y is too large")
    return x + y[: x.shape[0]] + y.view(2, -1).sum(0)


# Regions


@on_rows("region_gradients", (4, 3), (5, 3))
class RegionGradients(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            z = y.view(-1)
            w = self.fc(x).relu()
            with torch.enable_grad():
                w = self.out(w)
            z.mul_(2)
        return self.out(y), w


@on_rows("region_autocast", (4, 3), (5, 3))
class RegionAutocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out, self.norm = nn.Linear(3, 3), nn.Linear(3, 2), nn.LayerNorm(3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.fc(x))
            y = y + (x[:, :, None] @ x[:, None, :]).sum(-1)
        with torch.autocast("cpu", enabled=False):
            return self.out(y.float())


@on_rows("region_checkpoint", (4, 3), (5, 3))
class RegionCheckpoint(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(lambda x: self.fc(x).relu(), x, use_reentrant=False)
        with torch.inference_mode(False), torch.set_grad_enabled(True):
            return self.out(y)


@on_rows("region_subgraph", (4, 3), (5, 3))
class RegionSubgraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.part = torch.compiler.nested_compile_region(lambda x, y: (self.fc(x) + y, x.sum(0)))

    def forward(self, x):
        y, z = self.part(x, x * 2)
        return self.part(y, z)


@on_rows("region_lower", (4, 6), (5, 6))
class RegionLower(nn.Module):
    """Operators that a region of `autocast` leaves in single precision, and those of the widest type."""

    def __init__(self):
        super().__init__()
        self.fc, self.conv = nn.Linear(6, 6), nn.Conv1d(1, 2, 3)
        self.attn = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.fc(x)
            z = torch.cat([y, x]) + y.prod(1).sum()
            with torch.autocast("cpu", dtype=torch.float16):
                w = self.conv(x[:, None]).mean(1)
            loss = F.mse_loss(y, x)
            v, _ = self.attn(x[None], x[None], x[None], need_weights=False)
        return z, w, loss, v, y.softmax(-1)


# Element types


@on_rows("type_half", (4, 3), (5, 3))
class TypeHalf(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3).to(torch.bfloat16)
        self.register_buffer("ones", torch.ones(3, dtype=torch.float16))

    def forward(self, x):
        return self.fc(x.bfloat16()), x.half() * self.ones + 1, x.to(torch.float16).softmax(-1)


@on_rows("type_wide", (4, 3), (5, 3))
class TypeWide(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3).double()

    def forward(self, x):
        y = self.fc(x.double())
        return y, y.float() + x, torch.zeros(3, dtype=torch.float64) + x


@form(
    "type_integers",
    lambda n: (ints(100, n), ints(100, n).int(), ints(100, n).short(), ints(100, n).byte(), ints(2, n).bool(), ints(100, n).char()),
    ({0: OPEN},) * 6,
    (4,),
    (5,),
)
def type_integers(a, b, c, d, e, g):
    return a // 7, b % 7, c + 1, d + d, e | (a > 50), g * 2, a / 3, b + 0.5, (a + b), e + 1, e.sum(), d.float().mean(), a.to(torch.int32) << 2


@on_x("type_complex")
def type_complex(x):
    return torch.view_as_real(torch.complex(x, x + 1) * 2)


@on_x("type_small")
def type_small(x):
    return x.to(torch.float8_e4m3fn).float()


@on_x("type_bits")
def type_bits(x):
    return x.view(torch.int32) & 0xFF


# Indices


@form("index_ends", lambda n: (f(n, 5), ints(4, 3) - 4, ints(5, 2, 3) - 5), ({0: OPEN}, None, None), (4,), (6,))
def index_ends(x, rows, columns):
    return x[rows], x[:, columns], x[rows[:, None], columns[0]], x[-1], x[..., -2:], x[rows, 1:3], x[None, :, columns[0]]


# The run


def drawn(module):
    """Draws everything anew: with initial values a part that is left out may not show."""
    generator = torch.Generator().manual_seed(1)
    for name, x in [*module.named_parameters(), *module.named_buffers()]:
        if x.is_floating_point() and x.numel() and 0 not in x.stride():
            uniform = torch.rand(x.shape, generator=generator)
            with torch.no_grad():
                x.copy_(uniform + 0.5 if "var" in name else uniform - 0.5)


def taken(structure):
    """The leaves that are tensors or numbers."""
    for leaf in pytree.tree_leaves(structure):
        if isinstance(leaf, (torch.Tensor, bool, int, float)):
            yield torch.as_tensor(leaf) if not isinstance(leaf, float) else torch.tensor(leaf, dtype=torch.float64)


def array(x):
    """NumPy has no bfloat16."""
    x = x.detach()
    return (x.float() if x.dtype in (torch.bfloat16, torch.float16) else x).numpy().copy()


def called(module, given):
    return module(**given) if isinstance(given, dict) else module(*given)


def compared(module, given, numbers):
    """The arrays of a run; numbers that it is given are constants unless they are open."""
    inputs = lambda: [x for x in pytree.tree_leaves(given) if isinstance(x, torch.Tensor) or numbers]
    held = dict([*module.named_parameters(), *module.named_buffers()])
    before = {name: x.detach().clone() for name, x in held.items()}
    arrays = {f"in_{at:02}": array(x) for at, x in enumerate(taken(inputs()))}
    with torch.no_grad():
        results = list(taken(called(module, given)))
    arrays |= {f"out_{at:02}": array(x) for at, x in enumerate(results)}
    arrays["types"] = np.array([_TORCH_TO_SERIALIZE_DTYPE[x.dtype].value for x in results], dtype=np.int64)
    for at, x in enumerate(taken(inputs())):
        if not np.array_equal(arrays[f"in_{at:02}"], array(x), equal_nan=True):
            arrays[f"after_in_{at:02}"] = array(x)
    for name, x in [*module.named_parameters(), *module.named_buffers()]:
        if not torch.equal(before[name], x):
            arrays[f"after_buffer:{name}"] = array(x)
    return arrays


def exported(module, given, dims):
    args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
    return torch.export.export(module, args, kwargs, dynamic_shapes=dims, strict=False)


def main():
    folder = pathlib.Path(next(a for a in sys.argv[1:] if not a.startswith("--")))
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    folder.mkdir(parents=True, exist_ok=True)
    made, left = 0, []
    for name, own in FORMS.items():
        if only not in name:
            continue
        for mode in ["", ".train"] if own.train else [""]:
            torch.manual_seed(0)
            module = own.make().train(bool(mode))
            drawn(module)
            inputs = lambda size: own.inputs(*size)
            plain = None
            for kind in ["", ".core"] if own.core else [""]:
                stem = f"{name}{mode}{kind}"
                if "--recorded" in sys.argv and stem not in RECORDED:
                    continue
                if (folder / f"{stem}.pt2").exists():
                    made += 1
                    continue
                try:
                    plain = plain or exported(copy.deepcopy(module), inputs(own.sizes[0]), own.dims)
                    program = plain.run_decompositions() if kind else plain
                    common.placed(program)
                    for at, size in enumerate(own.sizes):
                        np.savez(folder / f"{stem}_{at}.npz", **compared(copy.deepcopy(module), inputs(size), own.numbers))
                    torch.export.save(program, folder / f"{stem}.pt2")
                    made += 1
                except Exception as error:
                    (folder / f"{stem}.pt2").unlink(missing_ok=True)
                    left.append(stem)
                    print(f"left out {stem}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(f"forms {made} left_out {len(left)}")


if __name__ == "__main__":
    main()
