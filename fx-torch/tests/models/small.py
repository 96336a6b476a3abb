"""The programs of the tests (tests/data)."""

import torch
import torchvision
from torch import nn

from models.common import OPEN, Program, floats, indices, seeded


class Written(nn.Module):
    """A view that is written shows in its base."""

    def forward(self, x):
        y = x * 2
        part = y[:, 1:3]
        part.add_(1.0)
        y.view(-1).mul_(0.5)
        y.t()[0].zero_()
        return y, part.sum()


class Named(nn.Module):
    """Structures, keywords, constants and an argument that is `None`."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 2)
        self.register_buffer("k", torch.ones(2))
        self.c = torch.arange(2.0)

    def forward(self, x, pair, *, scale=None, extra=None):
        y = torch.relu_(self.bn(self.conv(x))).mean((2, 3))
        y = self.fc(y) + self.k * self.c
        if scale is not None:
            y = y * scale["a"]
        return {"out": y.view(y.shape[0], 2, 1), "pair": (pair[0] + pair[1], y.softmax(-1))}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.head = nn.GRU(10, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, ids):
        x, h = self.gru(self.lstm(self.emb(ids))[0])
        return self.head(x).log_softmax(-1), h


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.emb.weight
        self.norm, self.attn = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids):
        x = self.norm(self.emb(ids))
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        y, _ = self.attn(x, x, x, attn_mask=mask, need_weights=False)
        return self.out(x + y)


class Block(nn.Module):
    """A part of `Nested`: two linear layers beside the values that go around them."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down, self.act = nn.LayerNorm(6), nn.Linear(6, 8), nn.Linear(8, 6), nn.GELU()

    def forward(self, x, scale):
        n, m = x.shape[:2]
        y = self.down(self.act(self.up(self.norm(x)))) * scale
        return (x.reshape(n * m, 6) + y.reshape(n * m, 6)).view(n, m, 6)


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x, scale):
        for block in self.blocks:
            x = block(x, scale)
        return x


class Nested(nn.Module):
    """Classes inside of each other, of which one is called twice."""

    def __init__(self):
        super().__init__()
        self.stack, self.shared, self.head = Stack(), Block(), nn.Linear(6, 3)

    def forward(self, x, scale):
        x = self.shared(self.shared(self.stack(x, scale), scale), scale)
        return self.head(x)


class Mixed(nn.Module):
    """Complex numbers, places by masks, windows, boxes and regions of images."""

    def forward(self, x, boxes, scores):
        signal = torch.view_as_complex(x.mean(1)[..., :4].reshape(x.shape[0], -1, 2))
        power = (torch.fft.fft(signal, norm="ortho") * signal.conj()).abs()
        masked = x.index_put((x > 0.5,), torch.tensor(2.0)).unfold(-1, 3, 2)
        left = torchvision.ops.nms(boxes[:, 1:], scores, 0.3)
        regions = torchvision.ops.roi_align(x, boxes, 2, 0.5, 2, True)
        return power, masked.var(-1, correction=2), left, regions


@torch.library.custom_op("shop::swish", mutates_args=())
def swish(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x * torch.sigmoid(x * scale)


@swish.register_fake
def _(x, scale):
    return torch.empty_like(x)


@torch.library.custom_op("shop::halves", mutates_args=())
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(0), x[:, 1:].clone()


@halves.register_fake
def _(x):
    return x.new_empty(x.shape[1]), x.new_empty(x.shape[0], x.shape[1] - 1)


class Activation(nn.Module):
    def forward(self, x):
        return swish(x, 2.0)


class Custom(nn.Module):
    """Operators of the user's own: a program that registers a function for each has the values."""

    def __init__(self):
        super().__init__()
        self.act, self.fc = Activation(), nn.Linear(4, 4)

    def forward(self, x):
        total, rest = halves(self.act(self.fc(x)))
        return total + 1, rest.exp()


def boxes(n, count, size):
    """Rows of an image's number and two corners."""
    corners = torch.rand(count, 4, generator=seeded(n, count)) * size / 2
    corners[:, 2:] += corners[:, :2] + 1
    return torch.cat([(torch.arange(count) % n)[:, None].float(), corners], 1)


PROGRAMS = {
    "custom": Program(Custom, lambda n: {"x": floats(n, 4)}, {"x": {0: OPEN}}, [(2,), (1,)]),
    "mixed": Program(
        Mixed,
        lambda n, m: {"x": floats(n, 3, 4, 9), "boxes": boxes(n, m, 16), "scores": floats(m).sigmoid()},
        {"x": {0: OPEN}, "boxes": {0: OPEN}, "scores": {0: OPEN}},
        [(2, 12), (1, 7)],
    ),
    "written": Program(Written, lambda n, m: {"x": floats(n, m)}, {"x": {0: OPEN, 1: OPEN}}, [(4, 5), (3, 6)]),
    "named": Program(
        Named,
        lambda n, h: {"x": floats(n, 3, h, h), "pair": (floats(n), floats(n) + 1), "scale": {"a": floats(2)}, "extra": None},
        {"x": {0: OPEN, 2: OPEN, 3: OPEN}, "pair": ({0: OPEN}, {0: OPEN}), "scale": {"a": None}, "extra": None},
        [(2, 6), (3, 5)],
    ),
    "nested": Program(
        Nested,
        lambda n, m: {"x": floats(n, m, 6), "scale": floats(6)},
        {"x": {0: OPEN, 1: OPEN}, "scale": {}},
        [(2, 5), (3, 4)],
    ),
    "recurrent": Program(Recurrent, lambda n, m: {"ids": indices(20, n, m)}, {"ids": {0: OPEN}}, [(2, 5), (3, 5)]),
    "tied": Program(Tied, lambda n, m: {"ids": indices(11, n, m)}, {"ids": {0: OPEN, 1: OPEN}}, [(2, 5), (1, 3)]),
}
