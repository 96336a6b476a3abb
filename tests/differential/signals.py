"""Random calls of windows and of Fourier transforms of frames: what each is given, and PyTorch's name for it."""

import torch

from calls import FUNCTIONS, T, op

W = torch.signal.windows


def dtype(s):
    return s.pick(None, None, torch.float64, torch.float64, torch.float32, torch.float16 if s.chance(0.2) else None)


def window(name, *options):
    """Of so many points, and of one of each option's numbers, by name."""
    call = getattr(W, name)

    def made(m, *rest):
        *given, sym, dtype = rest
        return call(m, **{key: value for (key, _), value in zip(options, given)}, sym=sym, dtype=dtype)

    FUNCTIONS[name] = (made, lambda s: [s.pick(0, 1, 2, s.r.randint(3, 12)), *(of(s) for _, of in options), s.chance(0.5), dtype(s)], 64 if name == "kaiser" else 8)


for name in ["bartlett", "blackman", "cosine", "hamming", "hann", "nuttall"]:
    window(name)
window("exponential", ("center", lambda s: s.pick(None, None, 2.0, 0.5)), ("tau", lambda s: s.pick(1.0, 0.5, 3.0, 0.0 if s.chance(0.3) else 1.5)))
window("gaussian", ("std", lambda s: s.pick(1.0, 0.5, 3.0, -1.0 if s.chance(0.3) else 0.9)))
window("kaiser", ("beta", lambda s: s.pick(12.0, 0.0, 0.9, 5.5, -1.0 if s.chance(0.3) else 8.0)))
window("general_hamming", ("alpha", lambda s: s.pick(0.54, 0.5, 0.9)))
window("general_cosine", ("a", lambda s: s.pick([0.5, 0.5], [0.46, 0.23, 0.31], [1.0], [] if s.chance(0.3) else [0.2, 0.3, 0.4, 0.1])))


def cut(s, win):
    """How a signal is cut: the frame's length, the hop, the window's length, and the window that has it."""
    n = s.r.randint(4, 9)
    hop, length = s.pick(None, 1, 2, 3, 0 if s.chance(0.1) else n // 2), s.pick(None, None, n - 1, n, n + 1 if s.chance(0.1) else 3)
    # A window without zeros, so that no element is left out.
    window = win((length or n) + (1 if s.chance(0.02) else 0)) if s.chance(0.7) else None
    return n, hop, length, window


def positive(s, dtype):
    def of(n):
        return T(s.tensor([n], dtype, "normal", views=False).tensor.abs() + 0.5)

    return of


@op("stft", lambda x, n, h, w, win, c, mode, norm, one: torch.view_as_real(torch.stft(x, n, h, w, win, c, mode, norm, one, return_complex=True)), 64)
def _(s):
    dtype = s.pick("float32", "float64", "float64", "float16" if s.chance(0.2) else "float32")
    n, hop, length, window = cut(s, positive(s, dtype))
    shape = s.pick([], [2], [1], [3, 2] if s.chance(0.1) else [2])
    size = s.r.randint(n, n + 12) if s.chance(0.95) else 3
    mode = s.pick("reflect", "reflect", "constant", "replicate", "circular", "x" if s.chance(0.2) else "reflect")
    return [s.tensor([*shape, size], dtype, "normal"), n, hop, length, window, s.chance(0.6), mode, s.chance(0.3), s.chance(0.8)]


def inverse(x, n, h, w, win, c, norm, one, length):
    if x.shape[-1] != 2 or x.dtype not in (torch.float32, torch.float64):
        raise TypeError("no complex tensor")
    return torch.istft(torch.complex(x[..., 0], x[..., 1]), n, h, w, win, c, norm, one, length)


@op("istft", inverse, 64)
def _(s):
    dtype = s.pick("float32", "float64", "float64")
    n, hop, length, window = cut(s, positive(s, dtype))
    one = s.pick(None, None, True, False)
    full = one is False or one is None and s.chance(0.2)
    frequencies = (n if full else n // 2 + 1) + (1 if s.chance(0.03) else 0)
    shape = s.pick([], [2], [1], [3, 2] if s.chance(0.1) else [2])
    x = s.tensor([*shape, frequencies, s.r.randint(1, 6), 2 if s.chance(0.97) else 3], dtype, "normal")
    center = s.chance(0.6)
    return [x, n, hop, length, window, center, s.chance(0.3), one, s.pick(None, None, 3, 5, 30 if s.chance(0.3) else 4)]
