"""Random calls of running products, norms, statistics and losses: what each is given, and PyTorch's name for it."""

import torch
import torch.nn.functional as F
from torch import nn

from calls import FUNCTIONS, T, broadcast, classified, distinct, loss_reduction, op, reduced, reduction, spread, two
from layers import layer
from values import FLOATS, INTS


def along(name, call=None, floats=8, ints=4, bools=1, ulps=16):
    def generator(s):
        x = s.tensor(s.shape(), s.dtype(floats, ints, bools))
        return [x, s.dim(x.tensor.dim())]

    FUNCTIONS[name] = (call or getattr(torch, name), generator, ulps)


along("cumprod")
along("logcumsumexp", floats=12, ints=1, bools=0)
along("cummax", ulps=2)
along("cummin", ulps=2)


@op("prod", lambda x, d, k: torch.prod(x, d, k) if d is not None else (torch.prod(x).reshape([1] * x.dim()) if k else torch.prod(x)), 16)
def _(s):
    x = s.tensor(s.shape(), s.dtype(), s.pick(None, "small", "normal"))
    return [x, None if s.chance(0.3) else s.dim(x.tensor.dim()), s.chance(0.5)]


@op("diff", lambda x, n, d, a, b: torch.diff(x, n, d, a, b))
def _(s):
    x = s.any(0 if s.chance(0.03) else 1)
    d = s.dim(x.tensor.dim())
    own = s.tensor(list(x.tensor.shape), str(x.tensor.dtype)[6:]) if s.chance(0.2) else None
    return [x, s.r.randint(-1 if s.chance(0.04) else 0, 3), d, own, own if s.chance(0.5) else None]


def each(s, empty=0.0):
    """One dim or several."""
    x = reduced(s, 12, 1, 0)
    dims = s.dims(x.tensor.dim(), empty)
    return x, dims


@op("logsumexp", lambda x, d, k: torch.logsumexp(x, tuple(range(x.dim())) if d is None else d, k), 16)
def _(s):
    x, dims = each(s)
    return [x, dims, s.chance(0.5)]


ORDERS = (2.0, 2.0, 1.0, float("inf"), float("-inf"), 0.0, 3.0, 0.5, -1.0)


@op("vector_norm", lambda x, p, d, k: torch.linalg.vector_norm(x, p, d, k), 16)
def _(s):
    x = s.tensor(s.shape(), s.dtype(12, 1, 0), s.pick("normal", "small"))
    return [x, s.pick(*ORDERS), s.dims(x.tensor.dim(), 0.0), s.chance(0.5)]


@op("norm", lambda x, p, d, k: torch.norm(x, p, d, k), 16)
def _(s):
    x = s.tensor(s.shape(), s.dtype(12, 1, 0), s.pick("normal", "small"))
    return [x, s.pick(*ORDERS), s.dims(x.tensor.dim(), 0.0), s.chance(0.5)]


@op("normalize", lambda x, p, d, e: F.normalize(x, p, d, e), 16)
def _(s):
    x = s.tensor(s.shape(1), s.dtype(12, 1, 0), s.pick("normal", "small"))
    return [x, s.pick(2.0, 1.0, 3.0), s.dim(x.tensor.dim()), s.pick(1e-12, 0.1)]



reduction("nansum", lambda x, d, k: torch.nansum(x, dim=d, keepdim=k))
reduction("nanmean", lambda x, d, k: torch.nanmean(x, dim=d, keepdim=k), ints=1)


def whole(s):
    x = s.tensor(s.shape(), s.dtype(), s.pick(None, "small"))
    return [x, s.dims(x.tensor.dim(), 0.0), s.chance(0.5)]


for name in ["any", "all"]:
    call = getattr(torch, name)
    FUNCTIONS[name] = (lambda x, d, k, call=call: call(x, dim=tuple(range(x.dim())) if d is None else d, keepdim=k), whole, 2)
FUNCTIONS["count_nonzero"] = (torch.count_nonzero, lambda s: whole(s)[:2], 2)


@op("aminmax", lambda x, d, k: torch.aminmax(x, dim=d, keepdim=k))
def _(s):
    x = s.any()
    return [x, None if s.chance(0.3) else s.dim(x.tensor.dim()), s.chance(0.5)]


def finite_spread(s):
    """Of an infinity this mean is nan, by the formula that finds both, where `mean` has it right."""
    x, *rest = spread(s)
    style = s.pick("normal", "small")
    return [s.tensor(list(x.tensor.shape), str(x.tensor.dtype)[6:], style) if x.tensor.numel() < 400 else x, *rest]


for name in ["std_mean", "var_mean"]:
    call = getattr(torch, name)
    FUNCTIONS[name] = (lambda x, d, u, k, call=call: call(x, dim=d, correction=int(u), keepdim=k), finite_spread, 16)


def ordered(s):
    x = distinct(s, s.shape(numel=90), s.pick(*FLOATS, *INTS))
    return x, s.dim(x.tensor.dim())


for name in ["median", "nanmedian"]:

    def generator(s):
        x, d = ordered(s)
        return [x, d, s.chance(0.5)]

    FUNCTIONS[name] = (getattr(torch, name), generator, 2)


@op("mode", torch.mode)
def _(s):
    x = s.tensor(s.shape(), s.dtype(4, 4, 1), "small")
    return [x, s.dim(x.tensor.dim()), s.chance(0.5)]


@op("kthvalue", torch.kthvalue)
def _(s):
    x, d = ordered(s)
    rank = x.tensor.dim()
    n = x.tensor.shape[d] if rank and -rank <= d < rank else 1
    return [x, s.r.randint(0 if s.chance(0.04) else 1, max(n, 1)), d, s.chance(0.5)]


for name in ["quantile", "nanquantile"]:

    def generator(s):
        dtype = s.pick("float32", "float64") if not s.chance(0.04) else s.dtype()
        x = s.tensor(s.shape(), dtype, s.pick("normal", "small", "special"))
        q = s.pick(0.0, 0.25, 0.3, 0.5, 0.9, 1.0, 1.5 if s.chance(0.1) else 0.7)
        if s.chance(0.4):
            count = s.r.randint(0, 3)
            q = T(torch.rand([count] if s.chance(0.8) else [], dtype=x.tensor.dtype if x.tensor.is_floating_point() else None))
        d = None if s.chance(0.3) else s.dim(x.tensor.dim())
        return [x, q, d, s.chance(0.4), s.pick("linear", "linear", "lower", "higher", "midpoint", "nearest")]

    FUNCTIONS[name] = (lambda x, q, d, k, i, call=getattr(torch, name): call(x, q, d, k, interpolation=i), generator, 16)


@op("cov", lambda x, c: torch.cov(x, correction=c), 16)
def _(s):
    shape = [s.size(1), s.size(2)][s.r.randint(0, 1) :] if not s.chance(0.05) else s.shape()
    dtype = s.dtype()
    return [s.tensor(shape, dtype, s.pick("normal", "small") if dtype in FLOATS else "small"), s.pick(1, 1, 0)]


@op("corrcoef", torch.corrcoef, 64)
def _(s):
    shape = [s.size(1), s.size(3)][s.r.randint(0, 1) :] if not s.chance(0.05) else s.shape(3, 3)
    # Of half precision each step is rounded there, and a deviation may become 0.
    return [s.tensor(shape, s.pick("float32", "float64"), "normal")]


@op("histc", lambda x, b, lo, hi: torch.histc(x, b, lo, hi))
def _(s):
    x = s.tensor(s.shape(), s.pick("float32", "float64") if not s.chance(0.04) else "int64", s.pick("normal", "small"))
    return [x, s.r.randint(0 if s.chance(0.04) else 1, 6), *s.pick((0.0, 0.0), (-1.0, 1.0), (0.0, 2.5), (2.0, 1.0) if s.chance(0.1) else (-2.0, 2.0))]


# Losses


def pair_of_floats(s, style=None):
    a, b = two(s, FLOATS, style)
    return [a, b, loss_reduction(s)]


@op("smooth_l1_loss", lambda x, t, r, b: F.smooth_l1_loss(x, t, reduction=r, beta=b), 16)
def _(s):
    return [*pair_of_floats(s), s.pick(1.0, 0.5, 2.0, 0.0)]


@op("huber_loss", lambda x, t, r, d: F.huber_loss(x, t, reduction=r, delta=d), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype), s.tensor(broadcast(s, shape), dtype), loss_reduction(s), s.pick(1.0, 0.5, 2.0, 0.0 if s.chance(0.2) else 1.5)]


def shares(s, shape, dtype):
    x = s.tensor(shape, dtype, "normal").tensor.abs() % 1.0
    return T(x + 1.5 if s.chance(0.03) else x)


@op("binary_cross_entropy", lambda x, t, w, r: F.binary_cross_entropy(x, t, w, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    weight = s.tensor(broadcast(s, shape), dtype, "normal") if s.chance(0.3) else None
    return [shares(s, shape, dtype), shares(s, shape if not s.chance(0.03) else [*shape, 2], dtype), weight, loss_reduction(s)]


@op("binary_cross_entropy_with_logits", lambda x, t, w, r, p: F.binary_cross_entropy_with_logits(x, t, w, reduction=r, pos_weight=p), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    weight = s.tensor(broadcast(s, shape), dtype, "normal") if s.chance(0.3) else None
    positive = s.tensor(shape[-1:], dtype, "normal") if s.chance(0.3) else None
    return [s.tensor(shape, dtype, "normal"), shares(s, shape, dtype), weight, loss_reduction(s), positive]


@op("kl_div", lambda x, t, r, g: F.kl_div(x, t, reduction=r, log_target=g), 16)
def _(s):
    shape, dtype, log = s.shape(), s.dtype(1, 0, 0), s.chance(0.4)
    target = s.tensor(broadcast(s, shape), dtype, "normal") if log else shares(s, broadcast(s, shape), dtype)
    return [s.tensor(shape, dtype, "normal"), target, s.pick("batchmean", loss_reduction(s)), log]


@op("poisson_nll_loss", lambda x, t, g, f, e, r: F.poisson_nll_loss(x, t, log_input=g, full=f, eps=e, reduction=r), 16)
def _(s):
    shape, dtype, log = s.shape(), s.pick("float32", "float64"), s.chance(0.5)
    x = s.tensor(shape, dtype, "normal") if log else shares(s, shape, dtype)
    return [x, T(s.tensor(broadcast(s, shape), dtype, "normal").tensor.abs() * 2), log, s.chance(0.5), s.pick(1e-8, 1e-3), loss_reduction(s)]


@op("gaussian_nll_loss", lambda x, t, v, f, e, r: F.gaussian_nll_loss(x, t, v, full=f, eps=e, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(1), s.pick("float32", "float64")
    var = s.tensor(s.pick(shape, shape[:-1], [*shape[:-1], 1]), dtype, "normal").tensor.abs()
    var = s.pick(0.5, 2.0) if s.chance(0.1) else T(-var - 1 if s.chance(0.03) else var)
    return [s.tensor(shape, dtype, "normal"), s.tensor(shape, dtype, "normal"), var, s.chance(0.5), s.pick(1e-6, 1e-2), loss_reduction(s)]


def signs(s, shape, dtype):
    data = [s.pick(-1, 1) for _ in range(torch.Size(shape).numel())]
    return T(torch.tensor(data, dtype=getattr(torch, dtype)).reshape(shape))


@op("hinge_embedding_loss", lambda x, t, m, r: F.hinge_embedding_loss(x, t, m, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype, "normal"), signs(s, shape, s.pick(dtype, dtype, "int64")), s.pick(1.0, 0.5), loss_reduction(s)]


@op("margin_ranking_loss", lambda a, b, t, m, r: F.margin_ranking_loss(a, b, t, m, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype, "normal"), s.tensor(shape, dtype, "normal"), signs(s, shape, dtype), s.pick(0.0, 0.5), loss_reduction(s)]


@op("soft_margin_loss", lambda x, t, r: F.soft_margin_loss(x, t, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype, "normal"), signs(s, shape, dtype), loss_reduction(s)]


@op("multi_margin_loss", lambda x, t, p, m, w, r: F.multi_margin_loss(x, t, p, m, w, reduction=r), 16)
def _(s):
    count, dtype = s.r.randint(1, 6), s.pick("float32", "float64", "float32", "float16" if s.chance(0.1) else "float64")
    batch = s.pick([], [s.size(1)])
    target = [s.r.randint(0, count - 1) for _ in range(torch.Size(batch).numel())]
    if s.chance(0.03):
        target[0] = count
    weight = s.tensor([count], dtype, "normal") if s.chance(0.3) else None
    return [s.tensor([*batch, count], dtype, "normal"), T(torch.tensor(target).reshape(batch)), s.pick(1, 2, 3 if s.chance(0.1) else 1), s.pick(1.0, 0.5), weight, loss_reduction(s)]


# Sums over alignments are taken in double precision here.
@op("ctc_loss", lambda x, t, n, m, b, r, z: F.ctc_loss(x, t, tuple(n), tuple(m), b, r, z), 256)
def _(s):
    steps, samples, classes, longest = s.r.randint(1, 6), s.r.randint(1, 3), s.r.randint(2, 4), s.r.randint(0, 3)
    dtype, blank = s.pick("float32", "float64"), s.r.randint(0, 1)
    logs = torch.log_softmax(s.tensor([steps, samples, classes], dtype, "normal").tensor, -1)
    others = [n for n in range(classes) if n != blank]
    sizes = [s.r.randint(0, longest) for _ in range(samples)]
    padded = s.chance(0.6)
    count = samples * longest if padded else sum(sizes)
    targets = torch.tensor([s.r.choice(others) for _ in range(count)], dtype=torch.int64)
    targets = targets.reshape(samples, longest) if padded else targets
    lengths = [s.r.randint(1, steps) for _ in range(samples)]
    return [T(logs), T(targets), lengths, sizes, blank, loss_reduction(s), s.chance(0.5)]


@op("multilabel_margin_loss", lambda x, t, r: F.multilabel_margin_loss(x, t, reduction=r), 16)
def _(s):
    count, dtype = s.r.randint(1, 6), s.pick("float32", "float64", "float32", "float16" if s.chance(0.1) else "float64")
    batch = s.pick([], [s.size(1)])
    rows = []
    for _ in range(torch.Size(batch).numel()):
        row = s.r.sample(range(count), count)
        rows.append(row[: s.r.randint(0, count)])
        rows[-1] += [-1] * (count - len(rows[-1]))
    if s.chance(0.03):
        rows[0][0] = count
    return [s.tensor([*batch, count], dtype, "normal"), T(torch.tensor(rows).reshape([*batch, count])), loss_reduction(s)]


@op("multilabel_soft_margin_loss", lambda x, t, w, r: F.multilabel_soft_margin_loss(x, t, w, reduction=r), 16)
def _(s):
    shape, dtype = s.shape(1), s.dtype(1, 0, 0)
    weight = s.tensor(shape[-1:], dtype, "normal") if s.chance(0.3) else None
    return [s.tensor(shape, dtype, "normal"), shares(s, shape, dtype), weight, loss_reduction(s)]


@op("pairwise_distance", lambda a, b, p, e, k: F.pairwise_distance(a, b, p, e, k), 16)
def _(s):
    shape, dtype = s.shape(1), s.dtype(1, 0, 0)
    return [s.tensor(shape, dtype, "normal"), s.tensor(broadcast(s, shape), dtype, "normal"), s.pick(2.0, 1.0, 3.0), s.pick(1e-6, 1e-3), s.chance(0.4)]


# Distances are taken from each other.
@op("triplet_margin_loss", lambda a, p, n, m, q, e, w, r: F.triplet_margin_loss(a, p, n, m, q, e, w, reduction=r), 64)
def _(s):
    shape, dtype = s.shape(1), s.dtype(1, 0, 0)
    three = [s.tensor(shape, dtype, "normal") for _ in range(3)]
    return [*three, s.pick(1.0, 0.5, -1.0 if s.chance(0.1) else 2.0), s.pick(2.0, 1.0), s.pick(1e-6, 1e-3), s.chance(0.4), loss_reduction(s)]


# A cosine near 0 is far smaller than the products that it is made of.
@op("cosine_embedding_loss", lambda a, b, t, m, r: F.cosine_embedding_loss(a, b, t, m, reduction=r), 512)
def _(s):
    shape, dtype = s.shape(1, 2), s.dtype(1, 0, 0)
    target = signs(s, shape[:-1], s.pick(dtype, "int64"))
    return [s.tensor(shape, dtype, "normal"), s.tensor(shape, dtype, "normal"), target, s.pick(0.0, 0.5), loss_reduction(s)]


def loss_layer(name, function, made, kept=2):
    """A layer of a loss: its first tensors are the function's, its options are those of the function's arguments."""

    def generator(s):
        args = FUNCTIONS[function][1](s)
        o = {key: args[at] for key, at in made.items()}
        if o.get("reduction") == "other":
            o["reduction"] = "sum"
        # What a constructor refuses.
        for key, bad in [("delta", 0.0), ("p", 3), ("margin", -1.0), ("beta", -1.0)]:
            if o.get(key) == bad:
                o[key] = 1
        return o, lambda: getattr(nn, name)(**o), args[:kept]

    layer(name, FUNCTIONS[function][2])(generator)


loss_layer("L1Loss", "l1_loss", {"reduction": 2})
loss_layer("SmoothL1Loss", "smooth_l1_loss", {"reduction": 2, "beta": 3})
loss_layer("HuberLoss", "huber_loss", {"reduction": 2, "delta": 3})
loss_layer("BCELoss", "binary_cross_entropy", {"reduction": 3})
loss_layer("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", {"reduction": 3})
loss_layer("NLLLoss", "nll_loss", {"ignore_index": 3, "reduction": 4})
loss_layer("KLDivLoss", "kl_div", {"reduction": 2, "log_target": 3})
loss_layer("PoissonNLLLoss", "poisson_nll_loss", {"log_input": 2, "full": 3, "eps": 4, "reduction": 5})
loss_layer("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 2, "reduction": 3})
loss_layer("MarginRankingLoss", "margin_ranking_loss", {"margin": 3, "reduction": 4}, 3)
loss_layer("CTCLoss", "ctc_loss", {"blank": 4, "reduction": 5, "zero_infinity": 6}, 4)
loss_layer("MultiMarginLoss", "multi_margin_loss", {"p": 2, "margin": 3, "reduction": 5})
loss_layer("MultiLabelMarginLoss", "multilabel_margin_loss", {"reduction": 2})
loss_layer("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", {"reduction": 3})
loss_layer("SoftMarginLoss", "soft_margin_loss", {"reduction": 2})
loss_layer("TripletMarginLoss", "triplet_margin_loss", {"margin": 3, "p": 4, "eps": 5, "swap": 6, "reduction": 7}, 3)
loss_layer("CosineEmbeddingLoss", "cosine_embedding_loss", {"margin": 3, "reduction": 4}, 3)


@layer("GaussianNLLLoss", 16)
def _(s):
    x, target, var, full, eps, reduction = FUNCTIONS["gaussian_nll_loss"][1](s)
    o = {"full": full, "eps": eps, "reduction": reduction if reduction != "other" else "sum"}
    var = var if isinstance(var, T) else T(torch.full(x.tensor.shape, var, dtype=x.tensor.dtype))
    return o, lambda: nn.GaussianNLLLoss(**o), [x, target, var]
