"""A program for each overload of PyTorch's core set, with PyTorch's results, for `examples/judge.rs`.

    python fx-torch/tests/core_aten.py DIR [--only PART,PART] [--judged LOG]

writes DIR/NAME.pt2, DIR/NAME_0.npz and DIR/NAME_1.npz for every overload with `torch.Tag.core` (`add.Tensor` as `add-Tensor`),
and prints how many there are, how many of them stand in a graph, and why the others do not. With what the judge printed of DIR,
it says how many are mapped, with equal results at both sizes and compiled, and why the others are not. Needs torch alone.
"""

import argparse
import pathlib
import warnings

import numpy as np
import torch
from torch import nn

from models import common
from models.common import floats, indices
from make import arrays, message, tensors, wide

warnings.filterwarnings("ignore")
OPEN = torch.export.Dim.DYNAMIC
aten = torch.ops.aten


def core():
    """The overloads, by name."""
    found = {}
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else []:
            op = getattr(packet, overload)
            if torch.Tag.core in op.tags:
                found[f"{name}.{overload}"] = op
    return found


class Call(nn.Module):
    """A call of an overload with other arguments than its tensors."""

    def __init__(self, op, call):
        super().__init__()
        self.op, self.call = op, call

    def forward(self, *given):
        return self.call(self.op, *given)


def positive(*sizes):
    return floats(*sizes).abs() + 0.5


def unit(*sizes):
    return floats(*sizes).tanh() * 0.9


def whole(*sizes):
    return indices(9, *sizes) - 4


def truths(*sizes):
    return floats(*sizes) > 0


# How an overload is called: of the operator and tensors, and the tensors of a batch.
CALLS = {}


def calls(names, call, *inputs):
    for name in names.split():
        CALLS[name] = (call, lambda n: [make(n) for make in inputs])


ALL = lambda n: floats(n, 5)
for name in "abs alias asinh atan ceil clone cos cosh elu erf exp expm1 floor gelu hardtanh isinf isnan leaky_relu logical_not neg relu round sigmoid sign sin sinh tan tanh trunc".split():
    calls(f"{name}.default", lambda op, x: op(x), ALL)
calls("acos.default asin.default atanh.default", lambda op, x: op(x), lambda n: unit(n, 5))
calls("log.default log10.default log1p.default log2.default sqrt.default rsqrt.default reciprocal.default", lambda op, x: op(x), lambda n: positive(n, 5))
calls("acosh.default", lambda op, x: op(x), lambda n: positive(n, 5) + 1)
calls("bitwise_not.default", lambda op, x: op(x), lambda n: whole(n, 5))
calls("elu.default", lambda op, x: op(x, 1.3, 1.1, 0.7), ALL)
calls("gelu.default", lambda op, x: op(x, approximate="tanh"), ALL)
for name in "maximum.default minimum.default atan2.default mul.Tensor div.Tensor fmod.Tensor remainder.Tensor eq.Tensor ge.Tensor gt.Tensor le.Tensor lt.Tensor ne.Tensor logical_and.default logical_or.default logical_xor.default".split():
    calls(name, lambda op, x, y: op(x, y), ALL, lambda n: floats(n, 6)[:, 1:].contiguous() + 0.01)
calls("add.Tensor sub.Tensor", lambda op, x, y: op(x, y, alpha=2), ALL, lambda n: floats(5))
calls("div.Tensor_mode", lambda op, x, y: (op(x, y, rounding_mode="floor"), op(x, y, rounding_mode="trunc"), op(x, y, rounding_mode=None)), ALL, lambda n: positive(5))
calls("div.Scalar_mode", lambda op, x: (op(x, 0.3, rounding_mode="floor"), op(x, 0.3, rounding_mode="trunc")), ALL)
calls("add.Scalar sub.Scalar", lambda op, x: op(x, 3, 2), ALL)
for name in "mul.Scalar div.Scalar fmod.Scalar remainder.Scalar eq.Scalar ge.Scalar gt.Scalar le.Scalar lt.Scalar ne.Scalar".split():
    calls(name, lambda op, x: op(x, 0.7), ALL)
calls("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", lambda op, x, y: op(x, y), lambda n: whole(n, 5), lambda n: whole(5))
calls("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", lambda op, x: op(x, 3), lambda n: whole(n, 5))
calls("pow.Tensor_Tensor", lambda op, x, y: op(x, y), lambda n: positive(n, 5), lambda n: floats(5))
calls("pow.Tensor_Scalar", lambda op, x: (op(x, 2), op(x, 3), op(x, 2.0)), ALL)
calls("pow.Scalar", lambda op, x: op(2.5, x), ALL)
calls("clamp.default", lambda op, x: (op(x, -0.5, 0.7), op(x, None, 0.2)), ALL)
calls("clamp.Tensor", lambda op, x, y: (op(x, y, y + 1), op(x, None, y)), ALL, lambda n: floats(5))
calls("where.self", lambda op, c, x, y: op(c, x, y), lambda n: truths(n, 5), ALL, lambda n: floats(5))
calls("atan2.out", lambda op, x, y: op(x, y, out=torch.empty_like(x)), ALL, lambda n: positive(n, 5))
calls("copy.default", lambda op, x, y: (op(x, y), op(x, y.long())), ALL, lambda n: floats(5))
calls("fill.Scalar", lambda op, x: op(x, 0.3), ALL)

# Put together.
calls("amax.default amin.default", lambda op, x: (op(x), op(x, [1]), op(x, [0, 2], True)), lambda n: floats(n, 3, 4))
calls("any.default", lambda op, x: op(x), lambda n: truths(n, 5))
calls("any.dim", lambda op, x: (op(x, 1), op(x, 0, True)), lambda n: truths(n, 5))
calls("any.dims", lambda op, x: (op(x, [1]), op(x, [0, 1], True), op(x)), lambda n: truths(n, 5))
calls("argmax.default argmin.default", lambda op, x: (op(x), op(x, 1), op(x, 0, True)), ALL)
calls("cumsum.default", lambda op, x: (op(x, 1), op(x, 0, dtype=torch.float64)), ALL)
calls("max.dim min.dim", lambda op, x: (op(x, 1), op(x, 0, True)), ALL)
calls("mean.default prod.default", lambda op, x: (op(x), op(x, dtype=torch.float64)), ALL)
calls("mean.dim sum.dim_IntList", lambda op, x: (op(x, [1]), op(x, [0, 2], True), op(x, None), op(x, [1], dtype=torch.float64)), lambda n: floats(n, 3, 4))
calls("prod.dim_int", lambda op, x: (op(x, 1), op(x, 0, True)), ALL)
calls("var.correction", lambda op, x: (op(x, [1]), op(x, [2], correction=0, keepdim=True), op(x, None, correction=2)), lambda n: floats(n, 3, 4))
calls("var.dim", lambda op, x: (op(x, [1]), op(x, [1, 2], False, True)), lambda n: floats(n, 3, 4))
calls("sort.default", lambda op, x: (op(x), op(x, 1, True)), ALL)
calls("topk.default", lambda op, x: (op(x, 2), op(x, 3, 1, False)), ALL)
calls("addmm.default", lambda op, x, a, b: op(x, a, b, beta=0.5, alpha=2), lambda n: floats(6), lambda n: floats(n, 5), lambda n: floats(5, 6))
calls("mm.default", lambda op, a, b: op(a, b), ALL, lambda n: floats(5, 6))
calls("bmm.default", lambda op, a, b: op(a, b), lambda n: floats(n, 3, 4), lambda n: floats(n, 4, 2))
calls("_softmax.default _log_softmax.default", lambda op, x: op(x, 1, False), ALL)
calls("_cdist_forward.default", lambda op, x, y: (op(x, y, 2.0, None), op(x, y, 1.0, 2)), lambda n: floats(n, 3, 4), lambda n: floats(n, 5, 4))
calls("_pdist_forward.default", lambda op, x: (op(x), op(x, 1.0)), lambda n: floats(n + 2, 4))

# Moved.
calls("cat.default", lambda op, x, y: (op([x, y]), op([x, x], 1)), ALL, lambda n: floats(2, 5))
calls("diagonal.default", lambda op, x: (op(x), op(x, 1, 1, 2)), lambda n: floats(n, 3, 4))
calls("expand.default", lambda op, x: op(x, [3, -1, 4, 5]), lambda n: floats(n, 1, 5))
calls("flip.default", lambda op, x: op(x, [0, 2]), lambda n: floats(n, 3, 4))
calls("permute.default", lambda op, x: op(x, [2, 0, -2]), lambda n: floats(n, 3, 4))
calls("repeat.default", lambda op, x: op(x, [2, 1, 3]), ALL)
calls("select.int", lambda op, x: (op(x, 1, 2), op(x, 0, -1)), ALL)
calls("select_scatter.default", lambda op, x, y: op(x, y, 1, 2), ALL, lambda n: floats(n))
calls("slice.Tensor", lambda op, x: (op(x, 1, 1, 4, 2), op(x, 1, -2)), ALL)
calls("slice_scatter.default", lambda op, x, y: op(x, y, 1, 1, 4, 2), ALL, lambda n: floats(n, 2))
calls("split_with_sizes.default", lambda op, x: op(x, [2, 3], 1), ALL)
calls("squeeze.dim", lambda op, x: (op(x, 1), op(x, 2)), lambda n: floats(n, 1, 4))
calls("squeeze.dims", lambda op, x: op(x, [1, 3]), lambda n: floats(n, 1, 4, 1))
calls("unsqueeze.default", lambda op, x: (op(x, 1), op(x, -1)), ALL)
calls("view.default", lambda op, x: op(x, [-1, 2, 6]), lambda n: floats(n, 3, 4))
calls("as_strided.default", lambda op, x: op(x, [4, 3], [3, 1], 1), lambda n: floats(n + 2, 3, 4))
calls("constant_pad_nd.default", lambda op, x: (op(x, [1, 2], 0.5), op(x, [0, 1, 2, 0])), lambda n: floats(n, 3, 4))
calls("reflection_pad1d.default", lambda op, x: op(x, [1, 2]), lambda n: floats(n, 3, 4))
calls("reflection_pad2d.default replication_pad2d.default", lambda op, x: op(x, [1, 2, 0, 1]), lambda n: floats(n, 2, 3, 4))
calls("reflection_pad3d.default replication_pad3d.default", lambda op, x: op(x, [1, 2, 0, 1, 1, 1]), lambda n: floats(n, 2, 3, 3, 4))

# Picked.
calls("embedding.default", lambda op, w, i: op(w, i), lambda n: floats(7, 4), lambda n: indices(7, n, 3))
calls("gather.default", lambda op, x, i: op(x, 1, i), ALL, lambda n: indices(5, n, 3))
calls("index.Tensor", lambda op, x, i: (op(x, [None, i]), op(x, [i[:1], i])), lambda n: floats(n, 3, 4), lambda n: indices(1, 4))
calls("index_put.default", lambda op, x, i, v: (op(x, [None, i], v), op(x, [None, None, i], v[0, 0, 0], True)), lambda n: floats(n, 5, 4), lambda n: torch.tensor([3, 0, 1]), lambda n: floats(n, 3, 4))
calls("index_select.default", lambda op, x, i: op(x, 1, i), ALL, lambda n: indices(5, 3))
calls("masked_scatter.default", lambda op, x, m, v: op(x, m, v), ALL, lambda n: truths(n, 5), lambda n: floats(n, 5))
calls("nonzero.default", lambda op, x: op(x), lambda n: truths(n, 5))
calls("scatter.value", lambda op, x, i: op(x, 1, i, 0.3), ALL, lambda n: indices(5, n, 2))
calls("scatter.src scatter_add.default", lambda op, x, i, v: op(x, 1, i, v), ALL, lambda n: torch.tensor([[3, 1]]).repeat(n, 1), lambda n: floats(n, 2))
calls("scatter_reduce.two", lambda op, x, i, v: (op(x, 1, i, v, "amax"), op(x, 1, i, v, "mean", include_self=False)), ALL, lambda n: indices(5, n, 2), lambda n: floats(n, 2))
calls("_embedding_bag.default", lambda op, w, i, o: (op(w, i, o)[0], op(w, i, o, False, 1)[0], op(w, i, o, False, 2)[0]), lambda n: floats(7, 4), lambda n: indices(7, n + 3), lambda n: torch.tensor([0, 2]))

# Layers.
IMAGE = lambda n: floats(n, 4, 8, 9)
calls("convolution.default", lambda op, x, w, b: op(x, w, b, [2, 1], [1, 0], [1, 2], False, [0, 0], 2), IMAGE, lambda n: floats(6, 2, 3, 2), lambda n: floats(6))
calls("_adaptive_avg_pool2d.default", lambda op, x: op(x, [3, 2]), IMAGE)
calls("_adaptive_avg_pool3d.default", lambda op, x: op(x, [3, 2, 2]), lambda n: floats(n, 2, 5, 4, 4))
calls("avg_pool2d.default", lambda op, x: (op(x, [3, 2], [2, 2], [1, 0], False, False), op(x, [2], [], [0], False, True, 3)), IMAGE)
calls("avg_pool3d.default", lambda op, x: op(x, [2, 2, 2], [1, 2, 2]), lambda n: floats(n, 2, 5, 4, 4))
calls("max_pool2d_with_indices.default", lambda op, x: op(x, [3, 2], [2, 2], [1, 0]), IMAGE)
calls("max_pool3d_with_indices.default", lambda op, x: op(x, [2, 2, 2], [1, 2, 2]), lambda n: floats(n, 2, 5, 4, 4))
calls("upsample_bilinear2d.vec", lambda op, x: (op(x, [12, 5], False, None), op(x, None, True, [2.0, 1.5])), IMAGE)
calls("upsample_nearest2d.vec", lambda op, x: (op(x, [12, 5], None), op(x, None, [2.0, 1.5])), IMAGE)
calls("grid_sampler_2d.default", lambda op, x, g: (op(x, g, 0, 0, False), op(x, g, 1, 1, True), op(x, g, 2, 2, False)), IMAGE, lambda n: unit(n, 5, 6, 2))
calls("col2im.default", lambda op, x: op(x, [5, 6], [2, 3], [1, 1], [0, 1], [1, 1]), lambda n: floats(n, 12, 24))
calls("native_layer_norm.default", lambda op, x, w, b: op(x, [3, 4], w, b, 1e-5), lambda n: floats(n, 3, 4), lambda n: floats(3, 4), lambda n: floats(3, 4))
calls("native_group_norm.default", lambda op, x, w, b: op(x, w, b, x.shape[0], 4, 6, 2, 1e-5), lambda n: floats(n, 4, 6), lambda n: floats(4), lambda n: floats(4))
calls("_native_batch_norm_legit_no_training.default", lambda op, x, w, b, m, v: op(x, w, b, m, v, 0.1, 1e-5)[0], lambda n: floats(n, 4, 6), lambda n: floats(4), lambda n: floats(4), lambda n: floats(4), lambda n: positive(4))
calls("_native_batch_norm_legit.default", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5)[0], lambda n: floats(n, 4, 6), lambda n: floats(4), lambda n: floats(4), lambda n: floats(4), lambda n: positive(4))
calls("_native_batch_norm_legit.no_stats", lambda op, x, w, b: op(x, w, b, True, 0.1, 1e-5), lambda n: floats(n, 4, 6), lambda n: floats(4), lambda n: floats(4))
calls("native_dropout.default", lambda op, x: op(x, 0.3, False), ALL)

# Gradients.
calls("_adaptive_avg_pool2d_backward.default", lambda op, g, x: op(g, x), lambda n: floats(n, 4, 3, 2), IMAGE)
calls("avg_pool2d_backward.default", lambda op, g, x: op(g, x, [3, 2], [2, 2], [1, 0], False, False, None), lambda n: floats(n, 4, 4, 4), IMAGE)
calls("max_pool2d_with_indices_backward.default", lambda op, g, x, i: op(g, x, [2, 3], [2, 3], [0, 0], [1, 1], False, i), lambda n: floats(n, 4, 4, 3), IMAGE, lambda n: aten.max_pool2d_with_indices(IMAGE(n), [2, 3], [2, 3])[1])
calls("convolution_backward.default", lambda op, g, x, w: op(g, x, w, [6], [2, 1], [1, 0], [1, 2], False, [0, 0], 2, [True, True, True]), lambda n: floats(n, 6, 4, 7), IMAGE, lambda n: floats(6, 2, 3, 2))
calls("embedding_dense_backward.default", lambda op, g, i: op(g, i, 7, 2, False), lambda n: floats(n, 3, 4), lambda n: indices(7, n, 3))
calls("native_layer_norm_backward.default", lambda op, g, x, m, r, w, b: op(g, x, [4], m, r, w, b, [True, True, True]), lambda n: floats(n, 3, 4), lambda n: floats(n, 3, 4), lambda n: floats(n, 3, 1), lambda n: positive(n, 3, 1), lambda n: floats(4), lambda n: floats(4))
calls("native_group_norm_backward.default", lambda op, g, x, m, r, w: op(g, x, m, r, w, x.shape[0], 4, 6, 2, [True, True, True]), lambda n: floats(n, 4, 6), lambda n: floats(n, 4, 6), lambda n: floats(n, 2), lambda n: positive(n, 2), lambda n: floats(4))

# Made.
calls("arange.start_step", lambda op, x: (op(0, x.shape[0], 1) + x[0, 0].long(), op(1.0, 3.0, 0.5)), ALL)
calls("full.default", lambda op, x: (op([x.shape[0], 2], 0.3), op([2], 3)), ALL)
calls("full_like.default", lambda op, x: op(x, 0.3), ALL)
calls("scalar_tensor.default", lambda op, x: x + op(0.3), ALL)
calls("empty.memory_format", lambda op, x: op([x.shape[0], 3]).zero_(), ALL)
calls("empty_strided.default", lambda op, x: op([x.shape[0], 3], [3, 1]).zero_(), ALL)
# What is drawn is another in every run.
calls("rand.default", lambda op, x: op([x.shape[0], 3]) * 0, ALL)
calls("randn.default", lambda op, x: op([x.shape[0], 3]) * 0, ALL)
calls("randperm.default", lambda op, x: op(x.shape[0]).sort()[0], ALL)
calls("_to_copy.default", lambda op, x: (op(x, dtype=torch.int64), op(x)), ALL)

# Sizes and numbers.
calls("sym_size.int", lambda op, x: torch.full([2], op(x, 0)), ALL)
calls("sym_numel.default", lambda op, x: torch.full([2], op(x)), ALL)
calls("sym_stride.int", lambda op, x: torch.full([2], op(x, 0)), lambda n: floats(3, n, 2))
calls("sym_storage_offset.default", lambda op, x: torch.full([2], op(x)), ALL)
calls("_local_scalar_dense.default", lambda op, x: x * op(x.sum()), ALL)
# Complex numbers inside.
calls("_fft_r2c.default", lambda op, x: (torch.view_as_real(op(x, [1], 0, True)), torch.view_as_real(op(x, [1], 1, False))), lambda n: floats(n, 6))
calls("_fft_c2r.default", lambda op, x: op(torch.view_as_complex(x), [1], 2, 6), lambda n: floats(n, 4, 2))


def targets(program):
    return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}


def written(folder, name, op):
    call, inputs = CALLS[name]
    module, first = Call(op, call), inputs(3)
    dims = ([{0: OPEN} if x.dim() and x.shape != y.shape else None for x, y in zip(first, inputs(1))],)
    program = torch.export.export(module, tuple(first), dynamic_shapes={"given": tuple(dims[0])}, strict=False)
    if f"aten.{name}" not in targets(program):
        program = program.run_decompositions({})
    if f"aten.{name}" not in targets(program):
        raise ValueError(f"the graph has {sorted(targets(program))}")
    for at, n in enumerate([3, 1]):
        own = arrays("in", inputs(n)) | arrays("out", tensors(module(*inputs(n))))
        try:
            own |= arrays("out64", [x.double() for x in tensors(module(*wide(inputs(n))))])
        except Exception:
            pass
        np.savez(folder / f"{name.replace('.', '-')}_{at}.npz", **own)
    torch.export.save(program, folder / f"{name.replace('.', '-')}.pt2")


def judged(path):
    lines = dict(line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line)
    mapped, names = 0, list(core())
    for name in names:
        line = lines.get(name.replace(".", "-"), "no program of it: export puts other operators in its place")
        mapped += line.startswith("read ")
        if not line.startswith("read "):
            print(f"refused {name}: {line[:300]}")
    print(f"core_aten {len(names)} mapped {mapped} refused {len(names) - mapped}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--judged", type=pathlib.Path, help="what the judge printed")
    options = parser.parse_args()
    if options.judged:
        return judged(options.judged)
    options.folder.mkdir(parents=True, exist_ok=True)
    made, left, all = 0, 0, core()
    for name, op in all.items():
        if not any(part in name for part in options.only.split(",")):
            continue
        try:
            if name not in CALLS:
                raise ValueError("no call of it is written")
            written(options.folder, name, op)
            made += 1
        except Exception as error:
            left += 1
            print(f"left out {name}: {message(error)}", flush=True)
    print(f"core_aten {len(all)} exported {made} left_out {left}")


if __name__ == "__main__":
    main()
