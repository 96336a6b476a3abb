"""Random calls of linear algebra and Fourier transforms: what each is given, and PyTorch's name for it.

The signs of singular vectors and eigenvectors are free: of `svd` and `eigh` the values are compared, and what products of
the vectors do not leave free.
"""

import torch

from calls import FUNCTIONS, T, broadcast, op

L = torch.linalg
# As a half type, integers and truth values are refused, they come rarely.
KINDS = ["float32"] * 6 + ["float64"] * 5 + ["float16", "int64"]


def matrix(s, m=None, n=None, rare=True):
    """A batch of matrices; square ones unless sizes are given."""
    m = s.size(0, 5) if m is None else m
    n = m if n is None else n
    lead = [s.size(0, 3) for _ in range(s.pick(0, 0, 1, 1, 2))]
    dtype = s.pick(*KINDS) if rare else s.pick("float32", "float64")
    if rare and s.chance(0.03):
        return s.tensor([m], dtype, "normal")
    if rare and s.chance(0.04):
        n += 1
    x = s.tensor([*lead, m, n], dtype, "normal")
    # Of equal rows or columns the ranks are decided by rounding.
    return s.tensor([*lead, m, n], dtype, "normal", views=False) if any(how == "expand" for how, *_ in x.views) else x


def made(x, tensor):
    """A tensor as `x` with other elements."""
    return T(tensor.to(x.tensor.dtype).contiguous())


def square(s):
    """Square matrices, nearly singular ones as rare as they are at random; some of zeros, with a row of zeros and triangular."""
    x = matrix(s)
    if x.tensor.dim() < 2 or x.tensor.shape[-1] != x.tensor.shape[-2] or not x.tensor.is_floating_point():
        return x
    kind = s.r.random()
    if kind < 0.04:
        return made(x, torch.zeros_like(x.tensor))
    if kind < 0.08 and x.tensor.shape[-1] > 1:
        y = x.tensor.clone()
        y[..., s.r.randrange(y.shape[-1]), :] = 0
        return made(x, y)
    if kind < 0.2:
        return made(x, x.tensor.tril())
    return x


def symmetric(s):
    x = matrix(s)
    if x.tensor.dim() < 2 or x.tensor.shape[-1] != x.tensor.shape[-2] or s.chance(0.2):
        return x
    return made(x, x.tensor + x.tensor.mT)


def positive(s):
    x = matrix(s)
    if x.tensor.dim() < 2 or x.tensor.shape[-1] != x.tensor.shape[-2] or not x.tensor.is_floating_point() or s.chance(0.1):
        return x
    wide = x.tensor.double()
    return made(x, wide @ wide.mT + torch.eye(wide.shape[-1], dtype=torch.float64))


def triangle(s):
    return s.pick("L", "l", "U", "u") if s.chance(0.97) else "x"


def rectangle(s):
    return matrix(s, s.size(0, 5), s.size(0, 5))


for name in ["inv", "det", "slogdet"]:
    FUNCTIONS[name] = (getattr(L, name), lambda s: [square(s)], 64)
FUNCTIONS["inverse"] = (torch.inverse, lambda s: [square(s)], 64)
FUNCTIONS["cholesky"] = (lambda x, u: L.cholesky(x, upper=u), lambda s: [positive(s), s.chance(0.4)], 64)
FUNCTIONS["svdvals"] = (L.svdvals, lambda s: [rectangle(s)], 64)
FUNCTIONS["eigvalsh"] = (L.eigvalsh, lambda s: [symmetric(s), triangle(s)], 64)


@op("qr", lambda x, mode: tuple(L.qr(x, mode)), 64)
def _(s):
    return [rectangle(s), s.pick("reduced", "complete", "r") if s.chance(0.97) else "x"]


def svd(x, full):
    u, v, vh = L.svd(x, full)
    k = v.shape[-1]
    again = (u[..., :k] * v.unsqueeze(-2)) @ vh[..., :k, :]
    return v, again, u.mT @ u, vh @ vh.mT


FUNCTIONS["svd"] = (svd, lambda s: [rectangle(s), s.chance(0.6)], 256)


def eigh(x, uplo):
    v, vectors = L.eigh(x, uplo)
    return v, (vectors * v.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors


FUNCTIONS["eigh"] = (eigh, lambda s: [symmetric(s), triangle(s)], 256)


@op("solve", lambda a, b, left: L.solve(a, b, left=left), 64)
def _(s):
    a = square(s)
    shape = list(a.tensor.shape)
    n = shape[-1]
    left = s.chance(0.75)
    lead = [1 if s.chance(0.3) else k for k in shape[:-2]] if not s.chance(0.25) else [s.size(1, 3)]
    kind = s.r.random()
    if kind < 0.2:
        b = [n]
    elif kind < 0.35:
        b = shape[:-1]
    else:
        k = s.size(0, 3)
        b = [*lead, n, k] if left else [*lead, k, n]
    if s.chance(0.03):
        b[-1] += 1
    dtype = str(a.tensor.dtype)[6:] if s.chance(0.97) else "float32"
    return [a, s.tensor(b, dtype, "normal"), left]


@op("lstsq", lambda a, b, rcond, driver: tuple(L.lstsq(a, b, rcond, driver=driver)), 256)
def _(s):
    a = matrix(s, s.size(0, 5), s.size(0, 4))
    # Of no unknowns the sums of "gels" are 0 in PyTorch.
    if a.tensor.shape[-1] == 0:
        a = matrix(s, s.size(1, 5), s.size(1, 4))
    shape = list(a.tensor.shape)
    # Of right sides without columns some drivers of LAPACK end the process.
    driver = s.pick(None, None, "gelsy", "gelsd", "gelss", "gels", "x" if s.chance(0.2) else None)
    deficient = driver != "gels" and s.chance(0.15) and len(shape) > 1 and shape[-1] > 1 and a.tensor.is_floating_point()
    if deficient:
        y = a.tensor.clone()
        y[..., 1] = y[..., 0]
        a = made(a, y)
    lead = [1 if s.chance(0.3) else k for k in shape[:-2]]
    b = shape[:-1] if s.chance(0.3) else [*lead, shape[-2] if len(shape) > 1 else 1, s.size(1, 3)]
    if s.chance(0.04):
        b = [*b, 1]
    dtype = str(a.tensor.dtype)[6:] if s.chance(0.97) else "float32"
    return [a, s.tensor(b, dtype, "normal"), s.pick(None, None, 1e-3), driver]


@op("pinv", lambda x, a, r, h: L.pinv(x, atol=a, rtol=r, hermitian=h), 256)
def _(s):
    h = s.chance(0.3)
    return [symmetric(s) if h else rectangle(s), s.pick(None, None, 0.1), s.pick(None, None, 0.2), h]


FUNCTIONS["pinverse"] = (torch.pinverse, lambda s: [rectangle(s), s.pick(1e-15, 1e-3)], 256)


@op("matrix_power", torch.matrix_power, 64)
def _(s):
    return [square(s), s.r.randint(-3, 6)]


@op("matrix_norm", lambda x, o, d, k, t: L.matrix_norm(x, o, (-2, -1) if d is None else d, k, dtype=t), 64)
def _(s):
    x = s.tensor(s.shape(1 if s.chance(0.05) else 2, 4, numel=120), s.pick(*KINDS, "bfloat16"), "normal", views=False)
    rank = x.tensor.dim()
    dims = None if s.chance(0.5) or rank < 2 else s.r.sample(range(rank), 2)
    if dims and s.chance(0.05):
        dims = [dims[0], dims[0]]
    order = s.pick("fro", "nuc", 1, -1, 2, -2, 1.0, float("inf"), float("-inf"), s.pick("x", 3, 0))
    return [x, order, dims, s.chance(0.4), s.pick(None, None, None, torch.float64, torch.float32)]


F = torch.fft


def numbers(x):
    """A complex tensor of its parts."""
    if x.dim() == 0 or x.shape[-1] != 2 or x.dtype not in (torch.float32, torch.float64):
        raise TypeError("no complex tensor")
    return torch.complex(x[..., 0], x[..., 1])


def parts(name, takes=True, gives=True):
    call = getattr(F, name)

    def of(x, *rest):
        y = call(numbers(x) if takes else x, *rest)
        return torch.view_as_real(y.resolve_conj()) if gives else y

    return of


def wave(s, least=1):
    shape = s.shape(least, 3, numel=100)
    return s.tensor([*shape, 2 if s.chance(0.96) else 3], s.pick("float32", "float32", "float64", "float64", "float32", "float16" if s.chance(0.2) else "float32"), "normal")


def scaled(s):
    return s.pick(None, None, "backward", "forward", "ortho", "x" if s.chance(0.2) else None)


def length(s):
    return None if s.chance(0.5) else s.r.randint(-1 if s.chance(0.1) else 1, 8)


for name in ["fft", "ifft", "irfft"]:

    def generator(s):
        x = wave(s, 0 if s.chance(0.03) else 1)
        return [x, length(s), s.dim(x.tensor.dim() - 1), scaled(s)]

    FUNCTIONS[name] = (parts(name, gives=name != "irfft"), generator, 64)


@op("rfft", parts("rfft", takes=False), 64)
def _(s):
    x = s.tensor(s.shape(0 if s.chance(0.03) else 1, 3, numel=100), s.pick("float32", "float64", "float32", "int64", "bool", "float16"), "normal" if s.chance(0.7) else "small")
    return [x, length(s), s.dim(x.tensor.dim()), scaled(s)]


for name in ["fft2", "ifft2", "fftn", "ifftn"]:

    def generator(s, pair=name.endswith("2")):
        x = wave(s, 1 if s.chance(0.05) else 2)
        rank = x.tensor.dim() - 1
        dims = None if s.chance(0.5) else s.r.sample(range(-rank, 0), min(rank, 2 if pair else s.r.randint(1, 3)))
        if dims and s.chance(0.05):
            dims[0] = dims[-1]
        count = len(dims) if dims else 2 if pair else s.r.randint(1, rank)
        sizes = None if s.chance(0.5) else [s.pick(-1, 1, 2, 3, 5, 6, 0 if s.chance(0.1) else 4) for _ in range(count)]
        if sizes and s.chance(0.05):
            sizes.append(2)
        return [x, sizes, dims, scaled(s)]

    call = parts(name)
    if name.endswith("2"):
        FUNCTIONS[name] = (lambda x, n, d, norm, call=call: call(x, n, (-2, -1) if d is None else d, norm), generator, 64)
    else:
        FUNCTIONS[name] = (call, generator, 64)


for name in ["fftshift", "ifftshift"]:

    def generator(s):
        x = wave(s)
        return [x, s.dims(x.tensor.dim() - 1, 0.0)]

    def call(x, dims, call=getattr(F, name)):
        if x.shape[-1] != 2:
            raise TypeError("no complex tensor")
        last = x.dim() - 1
        dims = list(range(last)) if dims is None else [dims] if isinstance(dims, int) else dims
        if not all(-last <= d < last for d in dims):
            raise IndexError("no such dim")
        return call(x, [d % last for d in dims])

    FUNCTIONS[name] = (call, generator, 2)


for name in ["hfft", "ihfft"]:

    def generator(s, takes=name == "hfft"):
        if takes:
            x = wave(s, 0 if s.chance(0.03) else 1)
        else:
            x = s.tensor(s.shape(0 if s.chance(0.03) else 1, 3, numel=100), s.pick("float32", "float64", "float64", "int64", "float16" if s.chance(0.2) else "float32"), "normal" if s.chance(0.7) else "small")
        return [x, length(s), s.dim(x.tensor.dim() - takes), scaled(s)]

    FUNCTIONS[name] = (parts(name, takes=name == "hfft", gives=name != "hfft"), generator, 64)


for name in ["rfft2", "irfft2", "rfftn", "irfftn", "hfft2", "ihfft2", "hfftn", "ihfftn"]:
    complex_in = name in ["irfft2", "irfftn", "hfft2", "hfftn"]

    def generator(s, pair=name.endswith("2"), complex_in=complex_in):
        least = 1 if s.chance(0.05) else 2
        if complex_in:
            x = wave(s, least)
        else:
            x = s.tensor(s.shape(least, 3, numel=100), s.pick("float32", "float64", "float64", "int64", "float16" if s.chance(0.2) else "float32"), "normal")
        rank = x.tensor.dim() - complex_in
        dims = None if s.chance(0.5) else s.r.sample(range(-rank, 0), min(rank, 2 if pair else s.r.randint(1, 3)))
        if dims and s.chance(0.05):
            dims[0] = dims[-1]
        if dims and s.chance(0.03):
            dims = []
        count = len(dims) if dims is not None else 2 if pair else s.r.randint(1, rank)
        sizes = None if s.chance(0.5) else [s.pick(-1, 1, 2, 3, 5, 6, 0 if s.chance(0.1) else 4) for _ in range(count)]
        if sizes and s.chance(0.05):
            sizes.append(2)
        return [x, sizes, dims, scaled(s)]

    call = parts(name, takes=complex_in, gives=not complex_in)
    if name.endswith("2"):
        FUNCTIONS[name] = (lambda x, n, d, norm, call=call: call(x, n, (-2, -1) if d is None else d, norm), generator, 64)
    else:
        FUNCTIONS[name] = (call, generator, 64)


for name in ["fftfreq", "rfftfreq"]:
    call = getattr(F, name)

    def generator(s):
        return [s.r.randint(0, 9), s.pick(1.0, 0.5, 0.1, 3.0, -2.0), s.pick(None, None, torch.float64, torch.float32, torch.float16, torch.int64 if s.chance(0.3) else None)]

    FUNCTIONS[name] = (lambda n, d, t, call=call: call(n, d, dtype=t), generator, 2)


@op("solve_triangular", lambda a, b, u, left, unit: L.solve_triangular(a, b, upper=u, left=left, unitriangular=unit), 64)
def _(s):
    a = square(s)
    shape = list(a.tensor.shape)
    n = shape[-1]
    # Small numbers on the diagonal make large ones of rounding.
    if len(shape) > 1 and shape[-1] == shape[-2] and a.tensor.is_floating_point() and s.chance(0.9):
        a = made(a, a.tensor + 3 * torch.eye(n, dtype=a.tensor.dtype))
    left, k = s.chance(0.7), s.size(0, 3)
    lead = [1 if s.chance(0.3) else k for k in shape[:-2]] if not s.chance(0.25) else [s.size(1, 3)]
    b = [*lead, n, k] if left else [*lead, k, n]
    if s.chance(0.03):
        b[-1] += 1
    b = b[-1:] if s.chance(0.03) else b
    return [a, s.tensor(b, str(a.tensor.dtype)[6:], "normal"), s.chance(0.5), left, s.chance(0.3)]


def single(x):
    """What has no elements is of a type that is computed with: PyTorch refuses no other then."""
    fits = x.tensor.numel() or x.tensor.dtype in (torch.float32, torch.float64)
    return x if fits else T(x.tensor.float().contiguous())


def to_factor(s):
    """A matrix, and whether rows may be exchanged; what has no elements is not refused by PyTorch."""
    a = rectangle(s) if s.chance(0.6) else square(s)
    if a.tensor.numel() == 0:
        return [single(a), True]
    return [a, s.chance(0.96)]


FUNCTIONS["lu"] = (lambda a, p: tuple(L.lu(a, pivot=p)), to_factor, 64)
FUNCTIONS["lu_factor"] = (lambda a, p: tuple(L.lu_factor(a, pivot=p)), to_factor, 64)


def factored(s, a):
    """The factors of a matrix, with pivots that are now and then no pivots."""
    wide = a.tensor if a.tensor.dim() > 1 and a.tensor.dtype in (torch.float32, torch.float64) else torch.eye(2)
    both, pivots, _ = L.lu_factor_ex(wide)
    if s.chance(0.03):
        pivots = pivots.long()
    if s.chance(0.03):
        pivots = pivots + 9
    return T(both.contiguous()), T(pivots.contiguous())


FUNCTIONS["lu_unpack"] = (lambda lu, p: tuple(torch.lu_unpack(lu, p)), lambda s: [*factored(s, rectangle(s))], 8)


@op("lu_solve", lambda lu, p, b, left, adjoint: L.lu_solve(lu, p, b, left=left, adjoint=adjoint), 64)
def _(s):
    both, pivots = factored(s, square(s) if s.chance(0.97) else rectangle(s))
    shape = list(both.tensor.shape)
    n, k, left = shape[-1], s.size(0, 3), s.chance(0.6)
    lead = [1 if s.chance(0.3) else k for k in shape[:-2]] if not s.chance(0.25) else [s.size(1, 3)]
    b = [*lead, n, k] if left else [*lead, k, n]
    if s.chance(0.03):
        b[-1] += 1
    if 0 in b or both.tensor.numel() == 0:
        pivots = T(torch.ones_like(pivots.tensor, dtype=torch.int32))
    return [both, pivots, s.tensor(b, str(both.tensor.dtype)[6:], "normal"), left, s.chance(0.4)]


@op("matrix_exp", torch.matrix_exp, 256)
def _(s):
    x = square(s)
    # Half precision is refused, and PyTorch refuses some views.
    return [T((x.tensor.float() if x.tensor.dtype == torch.float16 else x.tensor).contiguous())]


@op("matrix_rank", lambda x, a, r, h: L.matrix_rank(x, atol=a, rtol=r, hermitian=h))
def _(s):
    h = s.chance(0.3)
    x = symmetric(s) if h else rectangle(s)
    return [single(x), s.pick(None, None, 0.1), s.pick(None, None, 0.2), h]


@op("cond", lambda x, p: L.cond(x, p), 256)
def _(s):
    order = s.pick(2, 2, -2, 1, -1, float("inf"), float("-inf"), "fro", "nuc", s.pick("x", 3, 0))
    # Of a singular matrix, numbers are what rounding leaves of them, as is a slope of one number.
    x = single(matrix(s))
    if order in (2, -2) and s.chance(0.3):
        x = single(rectangle(s))
    if x.tensor.shape[-1] == 1:
        x = s.tensor([2, 2], "float64", "normal", views=False)
    return [x, order]


@op("vecdot", lambda x, y, d: L.vecdot(x, y, dim=d), 16)
def _(s):
    shape, dtype = s.shape(), s.dtype(12, 1, 0)
    # Of two vectors PyTorch broadcasts none.
    x, y = s.tensor(shape, dtype), s.tensor(broadcast(s, shape) if len(shape) > 1 else shape, dtype if not s.chance(0.03) else s.dtype())
    return [x, y, s.dim(x.tensor.dim()) if len(shape) > 1 else -1]


@op("householder_product", L.householder_product, 64)
def _(s):
    n = s.size(0, 4)
    a = matrix(s, n + s.size(0, 3), n)
    lead, k = list(a.tensor.shape[:-2]), s.r.randint(0, n + s.chance(0.05))
    if s.chance(0.03):
        lead.append(2)
    dtype = str(a.tensor.dtype)[6:] if s.chance(0.97) else "float32"
    return [a, s.tensor([*lead, k], dtype, "normal")]


def split(s, n):
    """Sizes whose product is a number."""
    of = [d for d in range(1, n + 1) if n and n % d == 0] or [n]
    d = s.pick(*of)
    return s.pick([n], [d, n // d] if d else [n], [1, n])


@op("tensorinv", L.tensorinv, 64)
def _(s):
    n = s.r.randint(1, 6)
    first, rest = split(s, n), split(s, n)
    if s.chance(0.05):
        rest[0] += 1
    ind = len(first) if s.chance(0.95) else s.pick(0, 1, 2, 3, -1)
    return [s.tensor([*first, *rest], s.pick(*KINDS), "normal", views=False), ind]


@op("tensorsolve", L.tensorsolve, 64)
def _(s):
    n = s.r.randint(1, 6)
    first, rest = split(s, n), split(s, n)
    sizes, dtype = [*first, *rest], s.pick(*KINDS)
    dims = None
    if s.chance(0.3):
        # What is moved behind the others stands elsewhere.
        sizes, dims = [*rest[-1:], *first, *rest[:-1]], [0]
        if len(rest) > 1:
            sizes, dims = [*first, *rest[:-1], rest[-1]], None
    if s.chance(0.03):
        sizes[0] += 1
    b = s.tensor(first, dtype if s.chance(0.97) else "float32", "normal", views=False)
    return [s.tensor(sizes, dtype, "normal", views=False), b, dims]
