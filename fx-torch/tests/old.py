"""Programs as older versions of torch write them, with PyTorch's results at two sizes, for `examples/forms.rs`.

    python fx-torch/tests/old.py DIR

run with torch 2.5 or newer, writes three programs of that version: DIR/torch25_cnn.pt2, torch25_block.pt2 and torch25_counted.pt2
of torch 2.5, each with `_0.npz` and `_1.npz` beside it: `in_00`, .., `out_00`, .. and what a run has written, as `forms.py` has
them. It uses only what torch 2.5 has, and exports as that version does by default. Needs torch and NumPy alone.
"""

import copy
import logging
import pathlib
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn
from torch.export import Dim

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def seeded(*sizes):
    return torch.Generator().manual_seed(sum(sizes))


def floats(*sizes):
    return torch.randn(*sizes, generator=seeded(*sizes))


class Cnn(nn.Module):
    """Convolutions with batch norms; the batch is open."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6)
        self.own, self.fc = nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.Linear(6, 4)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.bn(self.conv(x))), 2)
        x = F.hardswish(self.own(x)) + x
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Block(nn.Module):
    """Attention between tied weights, with structures and a keyword; the batch and the sequence are open."""

    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.emb.weight
        self.norm, self.qkv, self.proj = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, batch, *, scale):
        ids, mask = batch["ids"], batch["mask"]
        n, m = ids.shape
        x = self.emb(ids)
        q, k, v = [part.view(n, m, 2, 4).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)]
        bias = torch.zeros(n, m).masked_fill(~mask, float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[:, None, None, :])
        x = x + self.proj(y.transpose(1, 2).reshape(n, m, 8))
        return {"logits": self.out(x) * scale, "ends": (x[:, 0], x[:, -1])}


class Counted(nn.Module):
    """Buffers that a run writes, constants, sizes that are computed, weights with strides and of other types, a branch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("table", torch.arange(6.0).view(2, 3), persistent=False)
        self.register_buffer("short", torch.rand(3, generator=seeded(3)).bfloat16())
        self.weight = nn.Parameter(torch.zeros(3, 4).t())
        self.c = torch.tensor([0.5, -2.0, 3.0, 1.5])

    def forward(self, x):
        n = x.shape[0]
        self.calls.add_(1)
        self.total.add_(x.sum(0))
        y = F.pad(x, (0, 0, 1, 2)) @ self.weight + self.short.float()
        y = torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y * 3, (y,))
        both = torch.cat([x, x * self.c]).reshape(n * 2 * 4)
        steps = torch.arange(n * 2 + 1) * 0.5 + n // 2
        return y @ self.table.t(), both, steps, self.total * self.calls


# Dims that have one name are one.
N, M = Dim("n", max=64), Dim("m", max=64)


def block_inputs(n, m):
    ids = torch.randint(0, 11, (n, m), generator=seeded(n, m))
    mask = torch.arange(m)[None] < m - torch.arange(n)[:, None] % 3
    return ({"ids": ids, "mask": mask},), {"scale": floats(11)}


# The module, its inputs at a size, its open dims and two sizes.
PROGRAMS = {
    "cnn": (Cnn, lambda n: ((floats(n, 3, 12, 12),), {}), {"x": {0: Dim("n")}}, [(3,), (1,)]),
    "block": (
        Block,
        block_inputs,
        {"batch": {"ids": {0: N, 1: M}, "mask": {0: N, 1: M}}, "scale": None},
        [(3, 5), (1, 7)],
    ),
    # The sum is above zero at the first size, and below at the second one.
    "counted": (Counted, lambda n: ((floats(n, 4) + (0.5 if n > 1 else -2),), {}), {"x": {0: N}}, [(5,), (1,)]),
}


def drawn(module):
    """Draws everything anew: with initial values a part that is left out may not show."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, x in [*module.named_parameters(), *module.named_buffers()]:
            if name.endswith("running_var") or (x.dim() == 1 and name.endswith("weight")):
                x.copy_(torch.rand(x.shape, generator=generator) + 0.5)
            elif name.endswith("running_mean") or isinstance(x, nn.Parameter):
                x.copy_(torch.randn(x.shape, generator=generator) * 0.5)


def array(x):
    return x.detach().contiguous().numpy()


def compared(module, args, kwargs):
    """What a run is given, gives and writes."""
    given = pytree.tree_leaves((args, kwargs))
    all = {f"in_{at:02}": array(x).copy() for at, x in enumerate(given)}
    before = {name: x.clone() for name, x in module.named_buffers()}
    with torch.no_grad():
        results = pytree.tree_leaves(module(*args, **kwargs))
    all |= {f"out_{at:02}": array(x) for at, x in enumerate(results)}
    for name, x in module.named_buffers():
        if not torch.equal(x, before[name]):
            all[f"after_buffer:{name}"] = array(x)
    return all


def placed(program):
    """Keeps the lines of Python of this file, named from the repository's root: the library's would be most of the program."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            trace = node.meta.get("stack_trace", "").splitlines()
            own = [at for at, line in enumerate(trace) if __file__ in line]
            if trace and own:
                frame = trace[own[-1] : own[-1] + 2]
                node.meta["stack_trace"] = "\n".join(frame).replace(__file__, "fx-torch/tests/old.py") + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    version = "".join(torch.__version__.split(".")[:2])
    for name, (make, inputs, dims, sizes) in PROGRAMS.items():
        torch.manual_seed(0)
        module = make().eval()
        drawn(module)
        stem = f"torch{version}_{name}"
        args, kwargs = inputs(*sizes[0])
        with torch.no_grad():
            program = torch.export.export(copy.deepcopy(module), args, kwargs, dynamic_shapes=dims)
        placed(program)
        for at, size in enumerate(sizes):
            args, kwargs = inputs(*size)
            all = compared(copy.deepcopy(module), args, kwargs)
            # The program itself gives the same, so that what is compared is what fx reads.
            own = pytree.tree_leaves(copy.deepcopy(program).module()(*args, **kwargs))
            for at_out, x in enumerate(own):
                assert np.allclose(array(x), all[f"out_{at_out:02}"], 1e-5, 1e-6), (name, at_out)
            np.savez(folder / f"{stem}_{at}.npz", **all)
        torch.export.save(program, folder / f"{stem}.pt2")
        print(stem, (folder / f"{stem}.pt2").stat().st_size)


if __name__ == "__main__":
    main()
