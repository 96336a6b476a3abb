"""Functions that no model here calls, a program each (PyTorch's core set is in `core_aten.py`)."""

import torch
import torch.nn.functional as F
from torch import nn

from models.common import OPEN, Program, floats, indices

aten = torch.ops.aten
PROGRAMS = {}


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a, b=None, c=None, d=None):
        given = [x for x in (a, b, c, d) if x is not None]
        return self.function(*given)


def function(name, call, *inputs):
    keys = "abcd"[: len(inputs)]
    first, second = [make(3) for make in inputs], [make(1) for make in inputs]
    dims = {key: {0: OPEN} if x.shape != y.shape else None for key, x, y in zip(keys, first, second)}
    PROGRAMS[f"f_{name}"] = Program(
        lambda: Function(call), lambda n: {key: make(n) for key, make in zip(keys, inputs)}, dims, [(3,), (1,)]
    )


ROWS = lambda n: floats(n, 5)
OTHERS = lambda n: floats(n, 6)[:, 1:].contiguous() + 0.01
POSITIVE = lambda n: floats(n, 5).abs() + 0.5
UNIT = lambda n: floats(n, 5).tanh() * 0.9
SHARES = lambda n: floats(n, 5).sigmoid()
WHOLE = lambda n: indices(9, n, 5) - 4
COUNTS = lambda n: indices(5, n, 5)
IMAGES = lambda n: floats(n, 4, 6, 7)
SQUARES = lambda n: floats(n, 4, 4)
LABELS = lambda n: indices(5, n)
WILD = lambda n: torch.where(floats(n, 5) > 1, float("nan"), torch.where(floats(n, 5) < -1, float("inf"), floats(n, 5)))

for name in """absolute deg2rad erfc exp2 frac rad2deg sgn signbit sinc negative positive isfinite isneginf isposinf
    fix asin_ relu_""".split():
    function(name, lambda x, name=name: getattr(torch.clone(x), name)() if name.endswith("_") else getattr(torch, name)(x), UNIT)
for name in "celu hardshrink logsigmoid mish relu6 selu softshrink softsign tanhshrink softmin".split():
    function(name, lambda x, name=name: getattr(F, name)(x), ROWS)
for name in "copysign fmax fmin hypot logaddexp logaddexp2 xlogy subtract divide true_divide isclose".split():
    function(name, lambda x, y, name=name: getattr(torch, name)(x, y), POSITIVE, POSITIVE if name == "isclose" else OTHERS if name != "xlogy" else POSITIVE)
function("erfinv", torch.erfinv, UNIT)
function("logit", lambda x: (torch.logit(x), torch.logit(x, 0.2), torch.special.expit(x)), SHARES)
function("heaviside", torch.heaviside, lambda n: floats(n, 5).round(), ROWS)
function("nan_to_num", lambda x: (torch.nan_to_num(x), torch.nan_to_num(x, 1.0, 2.0, -2.0)), WILD)
function("nans", lambda x: (torch.nansum(x.clamp(max=9), 1), torch.nanmean(x.clamp(max=9)), torch.nanmedian(x, 1)), WILD)
function("lerp", lambda x, y: (torch.lerp(x, y, 0.3), torch.lerp(x, y, y)), ROWS, OTHERS)
function("prelu", F.prelu, IMAGES, lambda n: floats(4))
function("threshold", lambda x: F.threshold(x, 0.1, -2.0), ROWS)
function("addcdiv", lambda x, y: (torch.addcdiv(x, x, y, value=0.3), torch.addcmul(x, x, y, value=0.3)), ROWS, POSITIVE)
function("shifts", lambda x: (x << 2, x >> 1, torch.bitwise_left_shift(x, 1), torch.bitwise_right_shift(x, 2), x ^ 3), COUNTS)
function("clamps", lambda x: (torch.clamp_max(x, 0.3), torch.clip(x, -0.2, 0.4), torch.clamp_min(x, 0.1)), ROWS)

# Put together.
function("aminmax", lambda x: (torch.aminmax(x), torch.aminmax(x, dim=1)), ROWS)
function("cum", lambda x: (torch.cummax(x, 1), torch.cummin(x, 0), torch.cumprod(x, 1), torch.logcumsumexp(x, 1)), ROWS)
function("logsumexp", lambda x: (torch.logsumexp(x, 1), torch.logsumexp(x, [0, 1], True)), ROWS)
function("counts", lambda x: (torch.count_nonzero(x), torch.count_nonzero(x, 1)), COUNTS)
function("median", lambda x: (torch.median(x, 1), torch.kthvalue(x, 2, 1)), ROWS)
function("mode", lambda x: torch.mode(x, 1), COUNTS)
function("spread", lambda x: (torch.std(x, 1), torch.std_mean(x, 1), torch.var_mean(x, [1], correction=0), torch.std(x, 1, correction=2)), ROWS)
function("norm", lambda x: (torch.norm(x), torch.norm(x, 1, 1), torch.norm(x, dim=1, keepdim=True), torch.linalg.norm(x, 1, 1)), ROWS)
function("matrix_norm", lambda x: (torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, 1)), SQUARES)
function("linalg", lambda x: (torch.linalg.det(x), torch.linalg.inv(x)), lambda n: floats(n, 4, 4) + 4 * torch.eye(4))
function("products", lambda x, m, v: (torch.addmv(v, m, v), torch.addr(m, v, v), torch.mv(m, v), torch.dot(v, v), torch.vdot(v, v), torch.inner(x, v), torch.trace(m), torch.kron(x, v)), ROWS, lambda n: floats(5, 5), lambda n: floats(5))
function("addbmm", lambda m, x, y: (torch.addbmm(m, x, y), torch.cdist(x, x), torch.cdist(x, x, 1.0)), lambda n: floats(4, 4), SQUARES, lambda n: floats(n, 4, 4) * 0.5)
function("bincount", lambda x: torch.bincount(x, minlength=9), LABELS)

# Moved and picked.
function("moved", lambda x: (torch.movedim(x, 0, 2), x.swapdims(0, 1), torch.ravel(x), torch.rot90(x, 1, [1, 2]), torch.narrow(x, 1, 1, 2)), SQUARES)
function("stacked", lambda x: (torch.hstack([x, x]), torch.vstack([x, x]), x.view_as(x), torch.tensor_split(x, 2, 1), torch.tensor_split(x, [1, 3], 1), torch.split(x, [2, 3], 1)), ROWS)
function("diagonal_scatter", lambda x, y: torch.diagonal_scatter(x, y, 0, 1, 2), SQUARES, lambda n: floats(n, 4))
function("picked", lambda x, i: (torch.take(x, i), torch.take_along_dim(x, i, 1), torch.argwhere(x > 0), torch.masked_select(x, x > 0), x[x > 0]), ROWS, lambda n: indices(5, n, 3))
function("put", lambda x, y: (torch.index_add(x, 1, torch.tensor([1, 3]), y, alpha=2), torch.index_copy(x, 1, torch.tensor([1, 3]), y), torch.index_fill(x, 1, torch.tensor([0, 4]), 0.3)), ROWS, lambda n: floats(n, 2))
function("masked_put", lambda x, y: (x.index_put((x > 0.5,), torch.tensor(2.0)), x.index_put((x[:, 0] > 0,), y), x.index_put((x > 0,), torch.tensor(1.0), True)), ROWS, lambda n: floats(5))
function("searched", lambda x: (torch.searchsorted(torch.tensor([-0.5, 0.0, 0.5]), x), torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5]), right=True)), ROWS)
function("isin", lambda x: (torch.isin(x, torch.tensor([1, 3])), F.one_hot(x, 5), torch.tril_indices(3, 4), torch.triu_indices(3, 4, 1), x.new_full([2], 3)), COUNTS)
function("drawn", lambda x: (torch.rand_like(x) * 0, torch.randn_like(x) * 0, torch.randint(0, 3, (2,)) * 0), ROWS)

# Layers.
function("adaptive_max", lambda x: (F.adaptive_max_pool2d(x, 3), F.adaptive_max_pool1d(x[:, 0], 3), F.adaptive_max_pool3d(x[:, None], 2)), IMAGES)
function("pools_with_indices", lambda x: (F.max_pool1d(x[:, 0], 2, return_indices=True), F.avg_pool1d(x[:, 0], 2), F.lp_pool2d(x, 2.0, 2)), IMAGES)
function("shuffles", lambda x: (F.pixel_unshuffle(x[..., :6], 2), F.channel_shuffle(x, 2)), IMAGES)
function("interpolated", lambda x: (
    F.interpolate(x[:, 0], 9, mode="linear"), F.interpolate(x[:, 0], 9), F.interpolate(x[:, None], (5, 7, 8)),
    F.interpolate(x[:, None], (5, 7, 8), mode="trilinear"), F.interpolate(x, (9, 5), mode="bicubic"), F.interpolate(x, scale_factor=1.7, mode="bilinear"),
    F.interpolate(x, (9, 5), mode="nearest-exact"), F.interpolate(x, (4, 5), mode="bilinear", antialias=True),
), IMAGES)
function("same_padding", lambda x, w: (F.conv2d(x, w, padding="same"), F.conv2d(x, w, padding="valid"), F.pad(x, (1, 2, 0, 1), mode="circular"), F.pad(x[:, 0], (1, 2), mode="replicate")), IMAGES, lambda n: floats(2, 4, 3, 3))
function("even_same_padding", lambda x, w: F.conv2d(x, w, padding="same"), IMAGES, lambda n: floats(2, 4, 2, 4))
function("conv_transpose3d", lambda x, w: F.conv_transpose3d(x[:, None], w, stride=2, padding=1), IMAGES, lambda n: floats(1, 2, 3, 3, 3))
function("instance_norm", lambda x, w: (F.instance_norm(x), F.instance_norm(x, weight=w, bias=w)), IMAGES, lambda n: floats(4))
function("softmaxes", lambda x: (torch.log_softmax(x, 1), torch.softmax(x, 0, dtype=torch.float64)), ROWS)
function("feature_dropout", lambda x: F.dropout2d(x, 0.3, False), IMAGES)
function("native_batch_norm", lambda x, w, v: aten.native_batch_norm(x, w, w, w, v, False, 0.1, 1e-5)[0], IMAGES, lambda n: floats(4), lambda n: floats(4).abs() + 0.5)
function("grouped_mm", lambda x, w, o: torch._grouped_mm(x, w, offs=o).float(), lambda n: floats(n + 3, 8).to(torch.bfloat16), lambda n: floats(2, 8, 16).to(torch.bfloat16), lambda n: torch.tensor([2, n + 3], dtype=torch.int32))
function("embedding_bag", lambda w, i, o: (F.embedding_bag(i, w, o), F.embedding_bag(i, w, o, mode="sum", padding_idx=2), F.embedding_bag(i, w, o, mode="max")), lambda n: floats(7, 4), lambda n: indices(7, n + 3), lambda n: torch.tensor([0, 2]))

# Losses.
function("losses", lambda x, y: (
    F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.huber_loss(x, y, delta=0.5), F.smooth_l1_loss(x, y, beta=0.5, reduction="none"),
    F.binary_cross_entropy(x, y), F.binary_cross_entropy_with_logits(x, y, pos_weight=y[0]), F.kl_div(x.log(), y, reduction="batchmean"),
    F.soft_margin_loss(x, y.round() * 2 - 1),
), SHARES, lambda n: floats(n, 6).sigmoid()[:, 1:].contiguous())
function("class_losses", lambda x, y: (
    F.cross_entropy(x, y), F.cross_entropy(x, y, ignore_index=2, label_smoothing=0.1), F.nll_loss(x.log_softmax(1), y, reduction="none"),
    F.nll_loss(x.log_softmax(1), y, weight=x[0].abs()),
), ROWS, LABELS)

# Gradients.
function("gradients", lambda g, y: (
    aten._softmax_backward_data(g, y, 1, torch.float32), aten._log_softmax_backward_data(g, y, 1, torch.float32), aten.threshold_backward(g, y, 0.4),
    aten.tanh_backward(g, y), aten.sigmoid_backward(g, y),
), ROWS, SHARES)
function("pool_gradients", lambda g, x: (
    aten.avg_pool2d_backward(g, x, [2, 2], [], [0, 0], False, True, None), aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, 3),
), lambda n: floats(n, 4, 3, 3), IMAGES)
function("conv_transpose_gradient", lambda g, x, w: aten.convolution_backward(g, x, w, [4], [2, 2], [1, 0], [1, 1], True, [1, 0], 2, [True, True, False])[:2], lambda n: floats(n, 4, 12, 15), IMAGES, lambda n: floats(4, 2, 3, 3))

# Complex numbers inside.
COMPLEX = lambda n: floats(n, 6, 2)
C, R = torch.view_as_complex, torch.view_as_real
function("complex", lambda x, y: (
    R(C(x) * C(y)), R(C(x) + C(y)), R(C(x) - C(y)), C(x).abs(), C(x).angle(), C(x).real, C(x).imag, R(C(x).conj().resolve_conj()), R(C(x) * 2.5), R(C(x) / 2.0),
    R(torch.complex(x[..., 0], y[..., 0])), R(torch.polar(x[..., 0], y[..., 0])), R(C(x).transpose(0, 1)), R(torch.cat([C(x), C(y)], -1)), R(C(x)[:, 1:3].unsqueeze(-1)),
    R(x[..., 0] * C(y)), R(C(x).sum(1)),
), COMPLEX, lambda n: floats(n, 7, 2)[:, 1:].contiguous())
function("transforms", lambda x, y: (
    R(torch.fft.fft(x)), R(torch.fft.rfft(x)), R(torch.fft.ifft(C(y))), torch.fft.irfft(C(y)), torch.fft.irfft(C(y), 7), R(torch.fft.fft(C(y), norm="ortho")),
    R(torch.fft.fft2(x)), R(torch.fft.ifft2(C(y))), R(torch.fft.fftn(x)), R(torch.fft.ifftn(C(y))), R(torch.fft.rfft2(x)), torch.fft.irfft2(C(y)),
), ROWS, COMPLEX)


# Other names, and what PyTorch has besides.
function("aliases", lambda x, y: (
    torch.arcsin(x), torch.arctan(x), torch.arctan2(x, y), torch.greater(x, y), torch.less_equal(x, 0.1), torch.not_equal(x, y), torch.concatenate([x, y]),
    torch.special.erf(x), torch.special.expit(x), torch.special.softmax(x, 1), torch.special.log_softmax(x, 1), torch.special.logsumexp(x, 1), torch.moveaxis(x, 0, 1),
), UNIT, OTHERS)
function("solved", lambda x, y: (
    torch.linalg.solve(x, y), torch.linalg.qr(x)[1].abs(), torch.linalg.svdvals(x), torch.linalg.slogdet(x), torch.linalg.cholesky(x @ x.mT), torch.linalg.eigvalsh(x + x.mT),
    torch.linalg.eigh(x + x.mT)[0], torch.linalg.svd(x)[1], torch.inverse(x), torch.det(x), torch.logdet(x @ x.mT), torch.linalg.matrix_power(x, 3), torch.linalg.pinv(x), torch.linalg.multi_dot([x[0], x[0], y[0]]),
), lambda n: floats(n, 4, 4) * 0.3 + 3 * torch.eye(4), lambda n: floats(n, 4, 2))
function("vectors", lambda x, y: (
    torch.linalg.cross(x[:, :3], y[:, :3]), torch.linalg.vecdot(x, y), torch.linalg.diagonal(x[None]), F.cosine_similarity(x, y), F.pairwise_distance(x, y), torch.dist(x, y), torch.dist(x, y, 1.0),
    torch.trapezoid(x), torch.trapz(x, dx=0.5, dim=0), torch.tensordot(x, y, dims=([1], [1])), torch.ger(x[0], y[0]), torch.outer(x[0], y[0]),
), ROWS, OTHERS)
function("bilinear", F.bilinear, ROWS, lambda n: floats(n, 3), lambda n: floats(2, 5, 3), lambda n: floats(2))
function("quantiles", lambda x: (torch.quantile(x, 0.3, 1), torch.quantile(x, torch.tensor([0.1, 0.9]), 0), torch.nanquantile(x, 0.5)), ROWS)
function("assembled", lambda x: (
    torch.atleast_2d(x[0]), torch.block_diag(x[:1], x[:1]), torch.cartesian_prod(x[0], x[0]), torch.column_stack([x, x]), torch.combinations(x[0]), torch.diag(x[0]), torch.diag_embed(x),
    torch.diagflat(x[0]), torch.dstack([x, x]), torch.fliplr(x), torch.flipud(x), torch.hsplit(x, [2, 3]), torch.vsplit(x[:1], 1), torch.msort(x), torch.vander(x[0], 3), torch.row_stack([x, x]),
), ROWS)
function("whole", lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), COUNTS, lambda n: indices(7, n, 6)[:, 1:].contiguous())
function("windows", lambda x: (
    x * torch.hann_window(5), x * torch.hamming_window(5, periodic=False), x * torch.blackman_window(5), x * torch.bartlett_window(5), x * torch.fft.fftfreq(5), x[:, :3] * torch.fft.rfftfreq(5, 0.1),
    torch.fft.fftshift(x, 1), torch.fft.ifftshift(x), x * torch.logspace(0, 1, 5), F.rrelu(x),
), ROWS)
function("spectra", lambda x: (
    torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=True).abs(), R(torch.stft(x, 16, 4, 12, window=torch.hann_window(12), center=False, return_complex=True)),
    R(torch.stft(x, 16, normalized=True, onesided=False, return_complex=True)),
), lambda n: floats(n, 64))
S = torch.special
function("special", lambda x, y: (
    torch.lgamma(x), S.gammaln(x), torch.digamma(x), S.psi(x), torch.polygamma(1, x), S.polygamma(2, x), torch.i0(x), S.i0(x), S.i0e(x), S.i1(x), S.i1e(x), S.entr(x), S.erfcx(x), S.ndtr(x),
    S.ndtri(y), S.log_ndtr(x), S.xlog1py(x, y), S.xlog1py(x, 0.5), S.zeta(x + 1, y), torch.igamma(x, y), S.gammainc(x, y), torch.igammac(x, y), S.gammaincc(x, y),
), POSITIVE, SHARES)
function("factors", lambda x, y: (
    *torch.linalg.lu(x), *torch.linalg.lu_factor(x), *torch.lu_unpack(*torch.linalg.lu_factor(x)), torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y), torch.linalg.matrix_exp(x),
    torch.linalg.solve_triangular(x, y, upper=True), torch.linalg.solve_triangular(x, y.mT, upper=False, left=False, unitriangular=True), torch.linalg.cond(x), torch.linalg.cond(x, 1), torch.linalg.matrix_rank(x),
    torch.linalg.householder_product(y, y[:, 0] * 0.3), torch.linalg.tensorinv(x[0].reshape(2, 2, 4)), torch.linalg.tensorsolve(x[0].reshape(2, 2, 4), y[0, :, 0].reshape(2, 2)),
), lambda n: floats(n, 4, 4) * 0.3 + 3 * torch.eye(4), lambda n: floats(n, 4, 2))
function("hermitian", lambda x, y: (
    R(torch.fft.rfftn(x)), R(torch.fft.rfft2(x, s=(3, 4))), torch.fft.irfftn(C(y)), torch.fft.hfft(C(y)), torch.fft.hfft2(C(y), norm="ortho"), torch.fft.hfftn(C(y), dim=[1]),
    R(torch.fft.ihfft(x).resolve_conj()), R(torch.fft.ihfft2(x).resolve_conj()), R(torch.fft.ihfftn(x, norm="forward").resolve_conj()),
), ROWS, COMPLEX)
function("signals", lambda x: (
    torch.istft(torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True), 16, 4, window=torch.hann_window(16)),
    torch.istft(torch.stft(x, 16, center=False, return_complex=True), 16, center=False, length=60), x[:, :9] * torch.signal.windows.kaiser(9), x[:, :9] * torch.signal.windows.gaussian(9, std=2.0),
), lambda n: floats(n, 64))
function("more_losses", lambda x, y: (
    F.cosine_embedding_loss(x, y, x[:, 0].sign()), F.hinge_embedding_loss(x, y.sign()), F.margin_ranking_loss(x, y, y.sign(), margin=0.1), F.multi_margin_loss(x, y[:, 0].sign().long() + 1),
    F.multilabel_margin_loss(x, (y[:, :5] > 9).long() - 1), F.poisson_nll_loss(x, y.abs()), F.poisson_nll_loss(x.abs(), y.abs() * 3, log_input=False, full=True, reduction="sum"), F.triplet_margin_loss(x, y, x * y, swap=True),
), ROWS, OTHERS)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(4, 3, bidirectional=True), nn.GRU(4, 3, 2)
        self.tanh, self.relu = nn.RNN(4, 3), nn.RNN(4, 3, nonlinearity="relu", batch_first=True)

    def forward(self, a):
        return self.lstm(a), self.gru(a), self.tanh(a), self.relu(a)


PROGRAMS["f_cells"] = Program(Cells, lambda n: {"a": floats(5, n, 4)}, {"a": {1: OPEN}}, [(3,), (1,)])
