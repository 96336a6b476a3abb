"""Gradients of calls in float64: what PyTorch's backward gives for each float input, where numbers are equal, at bounds,
zero, infinite, NaN or large, too."""

import math
import warnings

import torch

from values import T, digits, encode

# Larger inputs make lines long and say nothing new.
LARGEST = 400
BOUNDS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 6.0]
FAR = [math.inf, -math.inf, math.nan, 50.0, -50.0, 800.0, -800.0, 1e300, -1e300, 1e-300]
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError, ZeroDivisionError, NotImplementedError, OverflowError)
# Functions of places, of which PyTorch's backward reads beyond its memory where one is not finite, or far away.
PLACES = {"grid_sample"}
# Functions that read one triangle of a symmetric matrix, and give both the gradient.
SYMMETRIC = {"eigh", "eigvalsh", "cholesky"}
# Losses of probabilities, which refuse other numbers.
SHARES = {"binary_cross_entropy", "BCELoss"}
SHARES_AT = [0.0, -0.0, 1.0, 0.5, 1e-10, 1.0 - 2.0**-53, 1e-300]
# Layers that round, of which PyTorch has no counterpart with gradients.
ROUNDED = {"Int8Linear", "QuantizedLinear"}
# Parameters that a layer keeps as they are.
FROZEN = {"LoraLinear": "base."}


class TooLarge(Exception):
    """A call whose inputs are not written into a line."""


def viewed(leaf, views):
    for how, *rest in views:
        if how == "transpose":
            leaf = leaf.transpose(*rest)
        elif how == "expand":
            leaf = leaf.expand(*rest)
        else:
            d, start, stop, step = rest
            leaf = leaf[tuple([slice(None)] * d + [slice(start, stop, step)])]
    return leaf


class Wide:
    """Makes the float tensors of a call leaves of float64, mixed with numbers at which gradients differ."""

    def __init__(self, s, name):
        self.s = s
        self.leaves = []
        style = s.r.choices(["as it is", "bounds", "one number", "far"], [35, 35, 10, 20])[0]
        self.is_one_number = style == "one number"
        bounds, far = (SHARES_AT, []) if name in SHARES else (BOUNDS, FAR)
        self.is_place = name in PLACES
        far = [] if self.is_place else far
        self.numbers = {"as it is": [], "far": bounds + far}.get(style, bounds)
        if name in SYMMETRIC:
            self.numbers = []

    def mixed(self, data):
        r, numbers = self.s.r, self.numbers
        if self.is_place:
            data = data.nan_to_num(0.0, 9.0, -9.0).clamp(-9, 9)
        if not numbers:
            return data
        if self.is_one_number:
            return torch.full_like(data, r.choice(numbers))
        share = r.choice([0.1, 0.4, 0.8])
        flat = [r.choice(numbers) if r.random() < share else x for x in data.reshape(-1).tolist()]
        return torch.tensor(flat, dtype=torch.float64).reshape(data.shape)

    def of(self, arg):
        """The argument, its float tensors made leaves."""
        if isinstance(arg, (list, tuple)):
            return type(arg)(self.of(item) for item in arg)
        if not isinstance(arg, T):
            return arg
        storage = arg.storage
        if storage.numel() > LARGEST:
            raise TooLarge
        leaf = storage.detach().clone()
        if leaf.is_floating_point():
            leaf = self.mixed(leaf.double()).requires_grad_()
        self.leaves.append(leaf)
        return T(viewed(leaf, arg.views), leaf, arg.views)


def outputs(value):
    """The float tensors of a result."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in outputs(item)]
    return [value] if isinstance(value, torch.Tensor) and value.is_floating_point() else []


def weights(like, place):
    """What is asked of a result: a number for each element, by its place and the result's."""
    n = torch.arange(like.numel(), dtype=torch.int64)
    return (((n * 37 + 11 * place) % 17 - 8.5) / 4).to(like.dtype).reshape(like.shape)


def backward(make, leaves):
    """The gradient of each leaf that learns, `None` for the others; `make` makes the call with them."""
    value, own = make(leaves)
    asked = [(y, weights(y, place)) for place, y in enumerate(outputs(value)) if y.requires_grad]
    results, asked = zip(*asked) if asked else ([], [])
    learning = [leaf for leaf in own if leaf.requires_grad]
    if results and learning:
        found = torch.autograd.grad(results, learning, asked, allow_unused=True)
    else:
        found = [None] * len(learning)
    found = iter([torch.zeros_like(leaf) if grad is None else grad for grad, leaf in zip(found, learning)])
    return [next(found) if leaf.requires_grad else None for leaf in own]


def moved(leaf, turn):
    """A leaf whose elements are moved by some steps, equal ones alike, those at bounds not at all."""
    if not leaf.is_floating_point():
        return leaf
    with torch.no_grad():
        way = torch.frac(torch.sin(leaf * (12.9898 + turn)) * 43758.5453)
        stays = ((leaf * 2).frac() == 0) | ~torch.isfinite(leaf)
        return torch.where(stays, leaf, leaf * (1 + way * 2.0**-50)).requires_grad_(leaf.requires_grad)


def expected(grad, others):
    if grad is None:
        return None
    finite = torch.isfinite(grad)
    top = grad[finite].abs().max().item() if finite.any() else 0.0
    spread = 0.0
    for other in others:
        both = finite & torch.isfinite(other)
        spread = max(spread, (grad - other)[both].abs().max().item() if both.any() else 0.0)
    return {
        "dtype": "float64",
        "shape": list(grad.shape),
        "data": digits(grad),
        "tolerance": top * 1e-13,
        "spread": spread,
    }


def learnt(make, leaves):
    """Leaves and their gradients: those that PyTorch has a gradient for learn."""
    try:
        return leaves, backward(make, leaves)
    except RuntimeError as error:
        without = ["is not differentiable", "is not implemented"]
        if not any(text in str(error) for text in without):
            raise
    learning = [at for at, leaf in enumerate(leaves) if leaf.requires_grad]
    fewer = [(at,) for at in reversed(learning)] + [(a, b) for a in reversed(learning) for b in learning if b < a]
    for fixed in fewer:
        some = [leaf.detach() if at in fixed else leaf for at, leaf in enumerate(leaves)]
        try:
            return some, backward(make, some)
        except RuntimeError:
            pass
    raise NotImplementedError("there is no gradient")


def with_outcome(line, make, leaves):
    """The line with the gradients of a call; `make` makes it with leaves, and gives the leaves that it used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            leaves, found = learnt(make, leaves)
        except REFUSALS:
            return None
        others = []
        for turn in range(3):
            try:
                others.append(backward(make, [moved(leaf, turn) for leaf in leaves]))
            except REFUSALS:
                pass
    gradients = [expected(grad, [other[at] for other in others]) for at, grad in enumerate(found)]
    return line | {"outcome": {"gradients": gradients}} if any(gradients) else None


def placed(args, leaves):
    """The arguments as PyTorch takes them, with these leaves for their tensors."""
    left = iter(leaves)

    def of(arg):
        if isinstance(arg, T):
            return viewed(next(left), arg.views)
        if isinstance(arg, (list, tuple)):
            return type(arg)(of(item) for item in arg)
        return arg

    return [of(arg) for arg in args]


def of_call(s, line, name, call, args):
    """The line of a call's gradients; `None` where there are none, or its inputs are too large."""
    wide = Wide(s, name)
    try:
        args = wide.of(args)
    except TooLarge:
        return None
    tensors = []
    line = line | {"args": [encode(arg, tensors) for arg in args], "tensors": tensors}
    return with_outcome(line, lambda leaves: (call(*placed(args, leaves)), leaves), wide.leaves)


def of_layer(s, line, name, module, args):
    """The line of the gradients of a layer's inputs and parameters, as `of_call`; `module` makes the layer."""
    wide = Wide(s, name)
    if name in ROUNDED:
        return None
    try:
        args = wide.of(args)
    except TooLarge:
        return None
    tensors = []
    line = line | {"args": [encode(arg, tensors) for arg in args], "tensors": tensors}
    state = {path: value.double() if value.is_floating_point() else value for path, value in line.pop("state").items()}
    made = line["made"]
    made = made | {"dtype": "float64", "state": {path: T(value).json() for path, value in state.items()}}
    frozen = FROZEN.get(name)
    paths = [path for path, _ in module().named_parameters() if not (frozen and path.startswith(frozen))]
    made["learning"] = paths
    count = len(wide.leaves)

    def make(leaves):
        fresh = module().double()
        fresh.load_state_dict(state | dict(zip(paths, leaves[count:])))
        fresh.train(made["training"])
        inputs = [tuple(arg) if isinstance(arg, list) else arg for arg in placed(args, leaves)]
        own = dict(fresh.named_parameters())
        return fresh(*inputs), [*leaves[:count], *(own[path] for path in paths)]

    parameters = [state[path].clone().requires_grad_() for path in paths]
    return with_outcome(line | {"made": made}, make, [*wide.leaves, *parameters])
