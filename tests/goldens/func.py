"""Transforms of functions by torch.func, in float64: `python tests/goldens/func.py` writes `tests/goldens/func.json`.

Each case has its inputs and what torch.func gives; the Rust functions are in `fx-nn/tests/func.rs` and
`func_cases.rs`, by name. What follows a slash in a name is a second size of the same function.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch.func import (functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp,
                        vmap)

torch.set_default_dtype(torch.float64)
torch.manual_seed(53)
CASES = {}


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [leaf for item in value for leaf in flat(item)]


def tensor(value):
    value = value.detach()
    kind = "int64" if value.dtype == torch.int64 else "float64"
    return {"dtype": kind, "shape": list(value.shape), "data": value.reshape(-1).tolist()}


def case(name, inputs, result, names=()):
    """The first inputs may have names: those of parameters and buffers."""
    CASES[name] = {"inputs": [tensor(x) for x in inputs], "outputs": [tensor(x) for x in flat(result)]}
    if names:
        CASES[name]["names"] = list(names)


def r(*shape):
    return torch.randn(shape)


def mlp(w, b, v, x, y):
    return ((torch.tanh(x @ w + b) @ v - y) ** 2).sum()


w, b, v, x, y = r(3, 4), r(4), r(4, 2), r(3), r(2)
case("grad_of_first", [w, b, v, x, y], grad(mlp)(w, b, v, x, y))
case("grad_of_several", [w, b, v, x, y], grad(mlp, argnums=(0, 1, 2))(w, b, v, x, y))
case("value_and_grad", [w, b, v, x, y], tuple(reversed(grad_and_value(mlp, argnums=3)(w, b, v, x, y))))
xs, ys = r(5, 3), r(5, 2)
case("per_sample", [w, b, v, xs, ys],
     vmap(grad(mlp, argnums=(0, 1, 2)), in_dims=(None, None, None, 0, 0))(w, b, v, xs, ys))
case("per_model", [r(4, 3, 4), b, v, x, y], None or [])
ws = r(4, 3, 4)
case("per_model", [ws, b, v, x, y], vmap(grad(mlp), in_dims=(0, None, None, None, None))(ws, b, v, x, y))
case("both_batched", [ws, b, v, r(4, 3), r(4, 2)], [])
x4, y4 = r(4, 3), r(4, 2)
case("both_batched", [ws, b, v, x4, y4], vmap(mlp, in_dims=(0, None, None, 0, 0))(ws, b, v, x4, y4))


def f(x):
    return torch.sin(x) * x.prod() + x.cumsum(0)


z = r(4)
case("vjp", [z, z.flip(0)], (lambda o: (o[0], o[1](z.flip(0))[0]))(vjp(f, z)))
case("jvp", [z, z.flip(0)], jvp(f, (z,), (z.flip(0),)))
case("jacrev", [z], jacrev(f)(z))
case("jacfwd", [z], jacfwd(f)(z))
case("jacrev_of_jacfwd", [z], jacrev(jacfwd(f))(z))
case("jacfwd_of_jacfwd", [z], jacfwd(jacfwd(f))(z))


def energy(x):
    return torch.logsumexp(x * x, 0) + torch.softmax(x, 0)[0]


case("hessian", [z], hessian(energy)(z))
case("hessian_product", [z, z.flip(0)], jvp(grad(energy), (z,), (z.flip(0),))[1])
case("third", [z[0]], grad(grad(grad(lambda x: torch.sin(x) * x ** 3)))(z[0]))
case("vmap_of_hessian", [r(3, 4)], [])
zs = r(3, 4)
case("vmap_of_hessian", [zs], vmap(hessian(energy))(zs))
case("out_dims", [zs], vmap(lambda x: x.outer(x), out_dims=2)(zs))
case("in_dims", [r(4, 3)], [])
zt = r(4, 3)
case("in_dims", [zt], vmap(energy, in_dims=1)(zt))
case("nested_vmap", [zs, zt.t().contiguous()],
     vmap(vmap(lambda a, b: (a * b).exp(), in_dims=(None, 0)), in_dims=(0, None))(zs, zt.t().contiguous()))
case("reductions", [r(2, 3, 4)], [])
cube = r(2, 3, 4)
case("reductions", [cube],
     vmap(lambda x: (x.sum(0), x.mean(-1), x.amax(), x.sort(0)[0], x.argmax(1), x.softmax(1)))(cube))
case("indexing", [r(2, 5, 3), torch.tensor([[0, 2], [4, 4]])], [])
table, index = r(2, 5, 3), torch.tensor([[0, 2], [4, 4]])
case("indexing", [table, index], vmap(lambda t, i: (t[i], F.embedding(i, t), t.index_select(0, i)))(table, index))


def net(k, c, w, b, x, t):
    h = F.relu(F.conv2d(x[None], k, c, padding=1))
    h = F.max_pool2d(h, 2).flatten(1)
    return F.cross_entropy(F.linear(h, w, b), t[None])


k, c, lw, lb = r(4, 2, 3, 3), r(4), r(3, 36), r(3)
images, classes = r(3, 2, 6, 6), torch.tensor([0, 2, 1])
case("per_sample_cnn", [k, c, lw, lb, images, classes],
     vmap(grad(net, argnums=(0, 1, 2, 3)), in_dims=(None,) * 4 + (0, 0))(k, c, lw, lb, images, classes))


def attention(wq, wk, wv, x):
    q, key, val = (x @ m for m in (wq, wk, wv))
    h = F.scaled_dot_product_attention(q[None], key[None], val[None], is_causal=True)[0]
    return F.layer_norm(h, (4,)).square().mean() + F.gelu(h).sum()


q1, q2, q3, seq = r(4, 4), r(4, 4), r(4, 4), r(3, 5, 4)
case("per_sample_attention", [q1, q2, q3, seq],
     vmap(grad(attention, argnums=(0, 1, 2)), in_dims=(None, None, None, 0))(q1, q2, q3, seq))


def cell(w_ih, w_hh, b, x):
    h, c = torch.zeros(3), torch.zeros(3)
    for step in x:
        gates = w_ih @ step + w_hh @ h + b
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return (h * h).sum()


wi, wh, bb, long = r(12, 2), r(12, 3), r(12), r(2, 4, 2)
case("per_sample_lstm", [wi, wh, bb, long],
     vmap(grad(cell, argnums=(0, 1, 2)), in_dims=(None, None, None, 0))(wi, wh, bb, long))
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
params = {name: p.detach() for name, p in model.named_parameters()}
case("of_parameters", [*params.values(), xs[0], ys[0]],
     grad(lambda p: F.mse_loss(functional_call(model, p, (xs[0],)), ys[0]))(params))
ntk = lambda a: functional_call(model, params, (a,))
jac = lambda a: jacrev(lambda p: functional_call(model, p, (a,)))(params)
left, right = vmap(jac)(xs[:2]), vmap(jac)(xs[2:4])
kernel = sum(torch.einsum("nap,mbp->nmab", left[n].flatten(2), right[n].flatten(2)) for n in params)
case("tangent_kernel", [*params.values(), xs[:2], xs[2:4]], kernel)
case("mixed_partials", [z, z.flip(0)],
     jacfwd(jacrev(lambda a, b: (a.sin() * b.exp()).sum(), argnums=0), argnums=1)(z, z.flip(0)))
A = r(3, 3) + 3 * torch.eye(3)
case("solve", [A, r(3)], [])
rhs = r(3)
case("solve", [A, rhs], jacrev(lambda a, b: torch.linalg.solve(a, b), argnums=(0, 1))(A, rhs))
case("divergence", [z], torch.trace(jacrev(f)(z)))
case("where_and_masks", [zs], vmap(grad(lambda x: torch.where(x > 0, x ** 3, -x).masked_fill(x > 1, 0.5).sum()))(zs))


def sizes(small, large):
    """The two sizes of a whole model, with what its names end in."""
    return [("", small), ("/large", large)]


def ids(below, *shape):
    return torch.randint(below, shape)


# The models above, larger.
big = [r(8, 4, 3, 3), r(8), r(5, 128), r(5), r(4, 4, 8, 8), torch.tensor([4, 0, 3, 3])]
case("per_sample_cnn/large", big, vmap(grad(net, argnums=(0, 1, 2, 3)), in_dims=(None,) * 4 + (0, 0))(*big))
wide = [r(4, 4), r(4, 4), r(4, 4), r(6, 9, 4)]
case("per_sample_attention/large", wide, vmap(grad(attention, argnums=(0, 1, 2)), in_dims=(None, None, None, 0))(*wide))
deep = [r(12, 5), r(12, 3), r(12), r(6, 4, 5)]
case("per_sample_lstm/large", deep, vmap(grad(cell, argnums=(0, 1, 2)), in_dims=(None, None, None, 0))(*deep))


# Structures in and out.
def structured(p, x):
    h = torch.tanh(x @ p["w"] + p["layers"][0])
    loss = (h * p["layers"][1]).square().sum()
    return loss, {"h": h, "parts": [h.sum(), (p["w"] * 2, x)]}


pw, pb, pv, px = r(3, 4), r(4), r(4), r(2, 3)
leaves = lambda: {"w": pw, "layers": [pb, pv]}
case("aux_and_structures", [pw, pb, pv, px],
     (lambda o: [o[1][0], o[1][1], o[0]])(grad_and_value(structured, argnums=(0, 1), has_aux=True)(leaves(), px)))


def outputs(a, b):
    return a * b.sum(), {"s": (a.sin() @ b).sum(), "list": [b.exp(), (a * a).sum(0)]}


oa, ob = r(3, 2), r(2)
pulled = lambda ct: (lambda o: [o[0], o[1](ct)])(vjp(outputs, oa, ob))
cots = [r(3, 2), r(), r(2), r(2)]
case("vjp_of_structures", [oa, ob, *cots], pulled((cots[0], {"s": cots[1], "list": [cots[2], cots[3]]})))
tangents = [r(3, 2), r(2)]
case("jvp_of_structures", [oa, ob, *tangents], jvp(outputs, (oa, ob), tuple(tangents)))
case("jacrev_of_structures", [oa, ob], jacrev(outputs, argnums=(0, 1))(oa, ob))
case("jacfwd_of_structures", [oa, ob], jacfwd(outputs, argnums=(1, 0))(oa, ob))


# Second and third derivatives.
def blocks(a, b, c):
    return ((a.relu() * a) @ b.sin() @ c).sum()


ba, bb2, bc = r(2, 3), r(3, 2), r(2, 2)
case("hessian_of_several", [ba, bb2, bc], hessian(blocks, argnums=(0, 1, 2))(ba, bb2, bc))
case("hessian_of_vector", [z], hessian(lambda x: x.cumsum(0).sin() * x.prod())(z))
case("third_of_vector", [z[:3]], jacrev(jacfwd(jacrev(lambda x: (x.outer(x).sum(0) * x).tanh())))(z[:3]))


def field(w, b, v, x):
    return torch.tanh(torch.tanh(x @ w + b) @ v).sum()


def residual(w, b, v, points):
    laplacian = vmap(lambda x: torch.trace(hessian(field, argnums=3)(w, b, v, x)))(points)
    return (laplacian + vmap(lambda x: field(w, b, v, x))(points)).square().mean()


for end, (n, wide, count) in sizes((2, 4, 3), (3, 8, 5)):
    given = [r(n, wide), r(wide), r(wide, 1), r(count, n)]
    case("laplacian_loss" + end, given, grad_and_value(residual, argnums=(0, 1, 2))(*given)[::-1])


def adapted(w, x, y, x2, y2):
    loss = lambda w, x, y: (torch.tanh(x @ w) - y).square().mean()
    for _ in range(2):
        w = w - 0.3 * grad(loss)(w, x, y)
    return loss(w, x2, y2)


for end, (tasks, n) in sizes((2, 3), (4, 6)):
    given = [r(n), r(tasks, 5, n), r(tasks, 5), r(tasks, 4, n), r(tasks, 4)]
    of_tasks = lambda w, *rest: vmap(adapted, in_dims=(None, 0, 0, 0, 0))(w, *rest).sum()
    case("gradient_of_gradient_steps" + end, given, grad(of_tasks)(*given))


def gauss_newton(w, b, v, x, dw):
    of = lambda w: torch.tanh(x @ w + b) @ v
    out, change = jvp(of, (w,), (dw,))
    return out, vjp(of, w)[1](change)[0]


gn = [r(3, 4), r(4), r(4, 2), r(5, 3), r(3, 4)]
case("gauss_newton", gn, gauss_newton(*gn))


def rollout(state, k):
    slope = lambda s: torch.stack([s[1], -k * s[0].sin() - 0.1 * s[1]])
    for _ in range(4):
        k1 = slope(state)
        k2 = slope(state + 0.1 * k1)
        k3 = slope(state + 0.1 * k2)
        state = state + 0.2 / 6 * (k1 + 4 * k2 + k3)
    return state


start, stiff = r(3, 2), r(3).abs()
case("rollout", [start, stiff],
     vmap(lambda s, k: (jacfwd(rollout, argnums=(0, 1))(s, k), jacrev(rollout)(s, k)), out_dims=1)(start, stiff))


# Linear algebra.
def log_density(l, mean, x):
    cov = l @ l.mT + torch.eye(3)
    factor = torch.linalg.cholesky(cov)
    near = torch.linalg.solve(factor, x - mean)
    return -0.5 * near.square().sum() - factor.diagonal().log().sum() + torch.linalg.slogdet(cov)[1] * 0.1


lw3, mean3, xs3 = r(3, 3), r(3), r(4, 3)
case("cholesky", [lw3, mean3, xs3],
     vmap(lambda l, m, x: (grad(log_density, argnums=(0, 1))(l, m, x), hessian(log_density, argnums=1)(l, m, x)),
          in_dims=(None, None, 0))(lw3, mean3, xs3))


def spectral(a):
    values, vectors = torch.linalg.eigh(a + a.mT)
    return values, (vectors * values.sin()) @ vectors.mT


sq = r(2, 3, 3)
case("eigh", [sq], vmap(jacrev(spectral))(sq))
tall, dtall = r(4, 3), r(4, 3)
case("qr", [tall, dtall], jvp(torch.linalg.qr, (tall,), (dtall,)))
case("svd", [sq], vmap(lambda a: (grad(lambda a: torch.linalg.svdvals(a).log().sum())(a),
                                  jacfwd(lambda a: torch.linalg.svdvals(a))(a)))(sq))
bs = r(3, 2)
case("inverses", [sq, bs],
     vmap(lambda a, b: (jacrev(lambda a, b: torch.linalg.solve(a, b), argnums=(0, 1))(a, b),
                        grad(lambda a: torch.linalg.det(a) + torch.linalg.inv(a).trace())(a)),
          in_dims=(0, None))(sq, bs))


# Transforms of signals, scans, and orders.
def spectrum(x):
    return torch.view_as_real(torch.fft.rfft(x, dim=0))


def power(x):
    return (torch.fft.fft2(x).abs() ** 2 * torch.arange(12.).reshape(3, 4)).sum().log()


signal, sheet = r(2, 5, 2), r(3, 4)
case("fft", [signal, sheet], (vmap(jacrev(spectrum), in_dims=2, out_dims=-1)(signal), hessian(power)(sheet),
                              jacfwd(lambda x: torch.fft.irfft(torch.fft.rfft(x)[1:], n=5))(sheet[0])))


def scans(x):
    return x.cumprod(0).sum(0), x.logcumsumexp(1), x.cummax(1)[0], x.cumsum(-1).flip(0)


scanned = torch.tensor([[1., 0., 2., 2.], [0.5, 0.5, -1., 3.]])[None] * torch.tensor([1., -2.])[:, None, None]
case("scans", [scanned], vmap(jacrev(scans))(scanned))


def orders(x, weights):
    values, places = x.topk(3, dim=0)
    median = x.median(0)[0]
    ordered = (x.sort(0, descending=True)[0] * weights[:, None]).sum(0)
    return values.prod(0) + median * x.kthvalue(2, 0)[0] + ordered + torch.quantile(x, 0.3, dim=0), places


ordered, order_w = r(3, 5, 2), r(5)
case("orders", [ordered, order_w],
     vmap(lambda x, w: (lambda o: [o[0], o[1], o[2]])(vjp(lambda x: orders(x, w), x, has_aux=True))[0:1]
          + [jacrev(orders, argnums=(0, 1), has_aux=True)(x, w)], in_dims=(0, None), out_dims=0)(ordered, order_w))


# Where a function has corners.
def corners(x, y):
    parts = [x.maximum(y).sum(), x.minimum(y * 2).sum() * 2, x.clamp(-1, 1).square().sum(),
             x.clamp(min=0.).exp().sum() * 3, x.relu().sum() * 5, x.abs().sum() * 7, x.amax() * 11,
             x.amin(0).sum() * 13, x.max(0)[0].sum() * 17, torch.where(x >= y, x * x, y).sum(),
             F.hardtanh(x).sum() * 19, F.leaky_relu(x).sum() * 23]
    return torch.stack(parts).sum()


tied = torch.tensor([[0., 1., -1., 2.], [1., 0., -1., 2.], [2., 2., 0., 0.5]])
other = torch.tensor([[0., 1., -1., 1.], [0., 0., -1., 2.], [1., 1., 0., 0.25]])
case("corners", [tied, other], (grad(corners, argnums=(0, 1))(tied, other), vmap(grad(corners, argnums=(1, 0)))(
    tied[:, None], other[:, None]), jvp(corners, (tied, other), (torch.ones(3, 4), tied))))
case("norms_at_zero", [torch.zeros(3), torch.zeros(2, 3)],
     (grad(lambda x: x.norm() + (x ** 3).sum())(torch.zeros(3)), vmap(grad(lambda x: torch.linalg.vector_norm(x, 1)))(
         torch.zeros(2, 3)), grad(lambda x: x.prod())(torch.tensor([0., 2., 3.])),
      hessian(lambda x: x.prod())(torch.zeros(3))))


# Elements by their places.
def places(x, table, index, source):
    gathered = x.gather(0, index)
    added = torch.zeros_like(x).scatter_add(0, index, source)
    put = table.index_put((index[0],), source[:, :2].sum(0).expand(3, 2), accumulate=True)
    rows = table.index_add(0, index[1], source.mT[:, :2], alpha=0.5)
    return (gathered.sin() * added[1:3]).sum(0), put.exp() + rows, x.scatter(0, index, source).take(index.flatten())


px2, table2, index2, source2 = r(2, 4, 3), r(5, 2), ids(4, 2, 2, 3), r(2, 2, 3)
index2[:, 0] = torch.tensor([[3, 1, 0], [0, 2, 3]])
index2[:, 1] = torch.tensor([[1, 3, 2], [2, 1, 0]])
case("places", [px2, table2, index2, source2],
     vmap(lambda x, t, i, s: jacrev(lambda x, t, s: places(x, t, i, s), argnums=(0, 1, 2))(x, t, s),
          in_dims=(0, None, 0, 0))(px2, table2, index2, source2))


def pieces(x, y):
    x = x.slice_scatter(y, 1, 1, 3).select_scatter(y[:, 0].sin(), 1, 0)[:, :3]
    moved = torch.cat([x.roll(1, 1), x.flip(0).tril()], 1).unfold(1, 2, 2).pow(2).movedim(2, 0)
    return F.pad(moved, (1, 2)).diagonal(0, 1, 2).masked_fill(torch.tensor([[True], [False]]), 2.) * x.std()


sx, sy = r(3, 2, 4), r(2, 2, 3)
case("pieces", [sx, sy], vmap(jacrev(pieces, argnums=(0, 1)), in_dims=(0, -1))(sx, sy))


# Axes and randomness.
def nest(a, b, c):
    return (a * b).sum(0), a.outer(c), c.sin()


inner = vmap(nest, in_dims=(1, None, 0), out_dims=(0, -1, 1))
na, nb, nc = r(2, 4, 5), r(4), r(5, 3)
case("axes", [na, nb, nc], vmap(inner, in_dims=(0, None, None), out_dims=(-1, 1, 0))(na, nb, nc))


def noisy(w, x):
    noise = torch.rand(3)
    return ((w * x + noise) - noise).square().sum() + F.dropout(x, 0.0).sum() + F.dropout(w, 1.0).sum()


rw, rx = r(3), r(4, 3)
drawn = [vmap(grad(noisy, argnums=(0, 1)), in_dims=(None, 0), randomness=how) for how in ("same", "different")]
case("randomness", [rw, rx], [of(rw, rx) for of in drawn])
case("gradient_of_vmap", [rw, rx], grad(lambda w, x: vmap(lambda x: (w * x).softmax(0).log().square().sum())(x).sum(),
                                        argnums=(0, 1))(rw, rx))


def straight_through(x, y):
    hard = (x > 0).double() + x - x.detach()
    return (hard * y).sum() * y.detach().sum() + grad(lambda x: (x.detach() * x * x).sum())(x).square().sum()


case("stopped", [z, z.flip(0)], (grad(straight_through, argnums=(0, 1))(z, z.flip(0)),
                                hessian(straight_through)(z, z.flip(0))))


# Whole modules, by their parameters.
def named(model):
    state = {name: p.detach() + 0.1 * torch.randn_like(p) for name, p in model.named_parameters()}
    return state, list(state)


class Words(torch.nn.Module):
    def __init__(self, words, width, classes):
        super().__init__()
        self.emb = torch.nn.Embedding(words, width)
        self.norm = torch.nn.LayerNorm(width)
        self.fc = torch.nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(F.gelu(self.norm(self.emb(x)).mean(0)))


for end, (words, width, count) in sizes((5, 4, 3), (11, 6, 5)):
    module = Words(words, width, 3)
    state, names = named(module)
    data, labels = ids(words, count, 6), ids(3, count)
    loss = lambda p, x, t: F.cross_entropy(functional_call(module, p, (x,))[None], t[None], label_smoothing=0.1)
    case("per_sample_words" + end, [*state.values(), data, labels],
         vmap(grad_and_value(loss), in_dims=(None, 0, 0))(state, data, labels)[::-1], names)

for end, (width, heads, count, length) in sizes((4, 2, 2, 3), (8, 4, 3, 5)):
    module = torch.nn.TransformerEncoderLayer(width, heads, 6, 0.0, "gelu", batch_first=True)
    state, names = named(module)
    given = r(count, length, width)
    loss = lambda p, x: functional_call(module, p, (x[None],)).pow(3).sum()
    case("per_sample_transformer" + end, [*state.values(), given],
         vmap(grad(loss, argnums=(0, 1)), in_dims=(None, 0))(state, given), names)

for end, (inputs, hidden, layers, count) in sizes((2, 3, 1, 2), (3, 4, 2, 3)):
    module = torch.nn.LSTM(inputs, hidden, layers, batch_first=True, bidirectional=True)
    state, names = named(module)
    given = r(count, 4, inputs)
    loss = lambda p, x: (lambda o: o[0].square().sum() + o[1][1].sin().sum())(functional_call(module, p, (x[None],)))
    each = [grad(loss, argnums=(0, 1))(state, x) for x in given]
    case("per_sample_recurrent" + end, [*state.values(), given],
         [{n: torch.stack([e[0][n] for e in each]) for n in names}, torch.stack([e[1] for e in each])], names)

for end, (channels, classes, size, count) in sizes((2, 3, 4, 2), (4, 5, 8, 3)):
    module = torch.nn.Sequential(torch.nn.Conv2d(2, channels, 3, padding=1), torch.nn.BatchNorm2d(channels),
                                 torch.nn.ReLU(), torch.nn.AvgPool2d(2), torch.nn.Flatten(),
                                 torch.nn.Linear(channels * (size // 2) ** 2, classes))
    module[1].running_mean.copy_(r(channels))
    module[1].running_var.copy_(r(channels).abs() + 0.5)
    module.eval()
    state, names = named(module)
    buffers = {n: b for n, b in module.named_buffers() if "num_batches" not in n}
    given, labels = r(count, 2, size, size), ids(classes, count)
    loss = lambda p, b, x, t: F.cross_entropy(functional_call(module, (p, b), (x[None],)), t[None])
    case("per_sample_batch_norm" + end, [*state.values(), *buffers.values(), given, labels],
         vmap(grad_and_value(loss), in_dims=(None, None, 0, 0))(state, buffers, given, labels)[::-1],
         names + list(buffers))

for end, (models, n, wide) in sizes((2, 3, 4), (4, 5, 6)):
    many = [torch.nn.Sequential(torch.nn.Linear(n, wide), torch.nn.Tanh(), torch.nn.Linear(wide, 2))
            for _ in range(models)]
    stacked, _ = stack_module_state(many)
    stacked = {name: p.detach() for name, p in stacked.items()}
    given, wanted = r(6, n), r(6, 2)
    base = many[0]
    loss = lambda p, x, y: (functional_call(base, p, (x,)) - y).square().mean()
    case("ensemble" + end, [*stacked.values(), given, wanted],
         vmap(grad_and_value(loss), in_dims=(0, None, None))(stacked, given, wanted)[::-1], list(stacked))

wider = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
state, names = named(wider)
given, wanted = r(6, 5), r(3)
case("of_parameters/large", [*state.values(), given[0], wanted],
     grad(lambda p: F.mse_loss(functional_call(wider, p, (given[0],)), wanted))(state))
jac = lambda a: jacrev(lambda p: functional_call(wider, p, (a,)))(state)
left, right = vmap(jac)(given[:4]), vmap(jac)(given[4:])
case("tangent_kernel/large", [*state.values(), given[:4], given[4:]],
     sum(torch.einsum("nap,mbp->nmab", left[n].flatten(2), right[n].flatten(2)) for n in names))
path = pathlib.Path(__file__).with_name("func.json")
path.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "cases": CASES}) + "\n")
print(len(CASES), "cases")
