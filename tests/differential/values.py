"""Random tensors and numbers, and how a line of JSON holds them."""

import math

import torch

FLOATS = ["float32", "float64", "bfloat16", "float16"]
INTS = ["int64", "int32", "int16", "uint8"]
ALL = FLOATS + INTS + ["bool"]
# Types that hold integers of few bits, and that no arithmetic is drawn for.
STORED = ["int8"]
DTYPES = {name: getattr(torch, name) for name in ALL + STORED}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MANTISSA = {"float32": 23, "float64": 52, "bfloat16": 7, "float16": 10}


class T:
    """A tensor and how a line holds it: a storage (a pattern of bytes, repeated) and views of it."""

    def __init__(self, tensor, storage=None, views=(), pattern=None):
        self.tensor = tensor
        self.storage = tensor if storage is None else storage
        self.views = list(views)
        self.pattern = pattern

    def json(self):
        storage = self.storage
        data = storage if self.pattern is None else self.pattern
        out = {"dtype": NAMES[storage.dtype], "shape": list(storage.shape), "data": digits(data)}
        if self.views:
            out["views"] = self.views
        return out


def digits(tensor):
    if tensor.numel() == 0:
        return ""
    # A copy: what has one element may keep the stride of the view that it was.
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1))
    return flat.view(torch.uint8).numpy().tobytes().hex()


class Source:
    """Random values. `r` is a `random.Random`; everything here is drawn from it."""

    def __init__(self, r):
        self.r = r

    def chance(self, p):
        return self.r.random() < p

    def pick(self, *items):
        return self.r.choice(items)

    def size(self, least=0, most=6):
        if least == 0 and self.chance(0.06):
            return 0
        if least <= 1 and self.chance(0.15):
            return 1
        return self.r.randint(max(least, 1), most)

    def shape(self, least=0, most=5, numel=300, sizes=0):
        rank = self.r.randint(least, most) if self.chance(0.3) else min(max(self.r.choice([1, 2, 2, 3, 3, 4]), least), most)
        shape = [self.size(sizes) for _ in range(rank)]
        while math.prod(shape) > numel:
            at = self.r.randrange(rank)
            shape[at] = max(1, shape[at] // 2)
        return shape

    def dtype(self, floats=8, ints=4, bools=1):
        kind = self.r.choices(["f", "i", "b"], [floats, ints, bools])[0]
        if kind == "f":
            return self.r.choices(FLOATS, [5, 2, 3, 3])[0]
        return self.r.choice(INTS) if kind == "i" else "bool"

    def floats(self, count, style=None):
        r = self.r
        style = style or r.choices(["normal", "small", "wide", "special"], [60, 15, 8, 17])[0]
        if style == "normal":
            return [r.gauss(0, 1.5) for _ in range(count)]
        if style == "small":
            return [float(r.randint(-3, 3)) for _ in range(count)]
        if style == "wide":
            return [r.gauss(0, 1) * 10 ** r.uniform(-4, 4) for _ in range(count)]
        special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 6e4, -3e38, 1e-7, 1e-40, 0.5, 2.5, -2.5, 100.0]
        return [r.choice(special) if r.random() < 0.3 else r.gauss(0, 2) for _ in range(count)]

    def ints(self, count, dtype, style=None):
        r = self.r
        info = torch.iinfo(DTYPES[dtype])
        style = style or r.choices(["small", "wide", "edges"], [75, 15, 10])[0]
        if style == "small":
            return [r.randint(0 if info.min == 0 else -5, 9) for _ in range(count)]
        if style == "wide":
            return [r.randint(info.min, info.max) for _ in range(count)]
        return [r.choice([info.min, info.max, 0, 1, info.min + 1, info.max - 1, 7]) for _ in range(count)]

    def dense(self, shape, dtype, style=None):
        count = math.prod(shape)
        if dtype == "bool":
            data = [self.chance(0.5) for _ in range(count)]
        elif dtype in INTS + STORED:
            data = self.ints(count, dtype, style)
        else:
            data = self.floats(count, style)
        if dtype in FLOATS:
            return torch.tensor(data, dtype=torch.float64).to(DTYPES[dtype]).reshape(shape)
        return torch.tensor(data, dtype=DTYPES[dtype]).reshape(shape)

    def tensor(self, shape, dtype, style=None, views=True):
        """A tensor of the shape: often one that lies in its storage row by row, sometimes a view."""
        shape = list(shape)
        if not views or not shape or self.chance(0.65):
            return T(self.dense(shape, dtype, style))
        how = self.pick("transpose", "narrow", "expand")
        d = self.r.randrange(len(shape))
        if how == "transpose" and len(shape) > 1:
            e = self.r.randrange(len(shape))
            stored = list(shape)
            stored[d], stored[e] = stored[e], stored[d]
            storage = self.dense(stored, dtype, style)
            return T(storage.transpose(d, e), storage, [["transpose", d, e]])
        if how == "expand":
            stored = list(shape)
            stored[d] = 1
            storage = self.dense(stored, dtype, style)
            return T(storage.expand(shape), storage, [["expand", shape]])
        step, start = self.r.randint(1, 3), self.r.randint(0, 2)
        stored = list(shape)
        stored[d] = start + shape[d] * step + self.r.randint(0, 1)
        storage = self.dense(stored, dtype, style)
        stop = start + shape[d] * step
        index = [slice(None)] * d + [slice(start, stop, step)]
        return T(storage[tuple(index)], storage, [["narrow", d, start, stop, step]])

    def any(self, least=0, most=5, style=None, numel=300, dtype=None):
        return self.tensor(self.shape(least, most, numel), dtype or self.dtype(), style)

    def float(self, shape, style=None, dtype=None):
        return self.tensor(shape, dtype or self.dtype(1, 0, 0), style)

    def tiled(self, shape, dtype, offset=0.0):
        """A large tensor of a short pattern."""
        count = self.r.choice([1, 7, 64])
        pattern = (self.dense([count], dtype, "normal").double() + offset).to(DTYPES[dtype])
        numel = math.prod(shape)
        whole = pattern.repeat(-(-numel // count))[:numel].reshape(shape)
        return T(whole, pattern=pattern)

    def dim(self, rank, invalid=0.03):
        if rank == 0:
            return self.pick(0, -1) if not self.chance(invalid) else self.pick(1, -2)
        if self.chance(invalid):
            return self.pick(rank, -rank - 1)
        return self.r.randint(-rank, rank - 1)

    def dims(self, rank, empty=0.03):
        """`None`, a dim, or several."""
        if self.chance(0.2):
            return None
        if self.chance(0.45):
            return self.dim(rank)
        if self.chance(empty):
            return []
        count = self.r.randint(1, max(rank, 1))
        chosen = self.r.sample(range(rank), min(count, rank)) if rank else []
        chosen = [d - rank if self.chance(0.3) else d for d in chosen]
        if chosen and self.chance(0.02):
            chosen.append(chosen[0])
        return chosen

    def number(self, dtype="float32"):
        """A plain number beside a tensor."""
        r = self.r
        kind = r.choices(["int", "float", "odd", "far", "bool"], [50, 35, 7, 5, 3])[0]
        if kind == "int":
            return r.randint(-4, 9)
        if kind == "float":
            return r.choice([r.gauss(0, 2), 0.5, 2.0, -1.0, 0.0, 1.5])
        if kind == "odd":
            return r.choice([math.nan, math.inf, -math.inf, -0.0, 1e10, 1e-10])
        if kind == "far":
            return r.choice([255, 256, -129, 300, 2**31, -(2**31) - 1, 2**53 + 1, 2**62 + 3, -(2**63)])
        return r.choice([True, False])


def encode(arg, tensors):
    """An argument as a line holds it; tensors go to `tensors` and leave their place."""
    if isinstance(arg, T):
        tensors.append(arg.json())
        return {"tensor": len(tensors) - 1}
    if isinstance(arg, torch.dtype):
        return {"dtype": NAMES[arg]}
    if isinstance(arg, float) and not math.isfinite(arg):
        return {"float": "nan" if math.isnan(arg) else "inf" if arg > 0 else "-inf"}
    if isinstance(arg, slice):
        return {"slice": [arg.start, arg.stop, arg.step]}
    if arg is Ellipsis:
        return {"ellipsis": True}
    if isinstance(arg, (list, tuple)):
        return [encode(item, tensors) for item in arg]
    return arg


def nudged(tensor):
    """A float tensor as float64, each element moved by up to a step of its own type."""
    move = torch.rand(tensor.shape, dtype=torch.float64) * 2 - 1
    return tensor.double() * (1 + move * 2.0 ** -MANTISSA[NAMES[tensor.dtype]])


def plain(arg, judge=False):
    """An argument as PyTorch takes it; for its judge, floats are float64, and float64 is float32; or `nudged`."""
    if isinstance(arg, T):
        tensor = arg.tensor
        if not judge or not tensor.is_floating_point():
            return tensor
        if judge is nudged:
            return nudged(tensor)
        return tensor.to(torch.float32 if tensor.dtype == torch.float64 else torch.float64)
    if isinstance(arg, (list, tuple)):
        return type(arg)(plain(item, judge) for item in arg)
    return arg


def farthest(got, other):
    """The largest distance between elements that are finite in both."""
    if not all(isinstance(t, torch.Tensor) and t.is_floating_point() for t in (got, other)) or other.shape != got.shape:
        return 0.0
    wide, other = got.double(), other.double()
    both = torch.isfinite(wide) & torch.isfinite(other)
    return (wide - other)[both].abs().max().item() if both.any() else 0.0


def tolerance(got, other, ulps):
    """Four times PyTorch's own distance from its float64 result, and `ulps` at the largest magnitude.

    A float64 result is its own judge: how far it is from the truth is told by how far PyTorch's float32 result is from
    it, in proportion to the two types' steps. `other` is the float64 result, or for a float64 result the float32 one.
    """
    wide = got.double()
    finite = torch.isfinite(wide)
    if not finite.any():
        return 0.0
    top = wide[finite].abs().max().item()
    name = NAMES[got.dtype]
    least = torch.finfo(got.dtype).smallest_normal * 2.0 ** -MANTISSA[name]
    ulp = max(least, 2.0 ** (math.floor(math.log2(top)) - MANTISSA[name])) if top > 0 else least
    distance = farthest(got, other)
    if name == "float64":
        distance *= 2.0 ** (MANTISSA["float32"] - MANTISSA["float64"])
    return 4 * distance + ulps * ulp


def expected(got, other, moved, ulps):
    """What PyTorch gave, as a line holds it; `moved` is what it gives, several times, for moved inputs (`spread`)."""
    if isinstance(got, torch.Tensor):
        out = {"dtype": NAMES[got.dtype], "shape": list(got.shape), "data": digits(got)}
        if got.is_floating_point():
            out["tolerance"] = tolerance(got, other, ulps)
            out["spread"] = max(farthest(got if got.dtype == torch.float64 else other, each) for each in moved)
        return out
    if isinstance(got, (tuple, list)):
        other, *moved = [
            each if isinstance(each, (tuple, list)) and len(each) == len(got) else [None] * len(got)
            for each in [other, *moved]
        ]
        return [expected(a, b, c, ulps) for a, b, c in zip(got, other, zip(*moved))]
    if isinstance(got, float) and not math.isfinite(got):
        return encode(got, [])
    return got
