"""Transforms of functions by torch.func, in float64: `python tests/goldens/func.py` writes `tests/goldens/func.json`.

Each case has its inputs and what torch.func gives; the Rust functions are in `fx-nn/tests/func.rs`, by name.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch.func import (functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap)

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


def case(name, inputs, result):
    CASES[name] = {"inputs": [tensor(x) for x in inputs], "outputs": [tensor(x) for x in flat(result)]}


def r(*shape):
    return torch.randn(*shape)


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
path = pathlib.Path(__file__).with_name("func.json")
path.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "cases": CASES}) + "\n")
print(len(CASES), "cases")
