//! Every deliberate difference from PyTorch, each with its reason: the one table that may excuse a call.

mod gradients;

use fx_nn::value::DType;

use self::gradients::OF_GRADIENTS;
use crate::call::Call;
use crate::judge::{Difference, Kind};

/// Calls that may differ, and why.
pub struct Excuse {
    /// Names of `docs/ops.md`; none stands for all.
    pub names: &'static [&'static str],
    /// The kind of difference.
    pub kind: Kind,
    /// Whether it is such a call.
    pub when: fn(&Call, &Difference) -> bool,
    /// Why.
    pub reason: &'static str,
}

/// Differences of values, types, shapes and refusals.
const OF_RESULTS: &[Excuse] = &[
    Excuse {
        names: &[
            "view",
            "isin",
            "kron",
            "take_along_dim",
            "pixel_shuffle",
            "pixel_unshuffle",
        ],
        kind: Kind::Refusal,
        when: |_, difference| !difference.is_ours(),
        reason: "a view that would need a copy is copied: a tensor here has no strides that a program relies on",
    },
    Excuse {
        names: &[],
        kind: Kind::Value,
        when: |_, difference| difference.is_of_rounding(),
        reason: "PyTorch's own result moves as far if each input moves by a step of its type",
    },
    Excuse {
        names: &["gelu", "GELU"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found == f64::INFINITY && expected.is_nan())
        },
        reason: "gelu of infinity is infinity, of which PyTorch's vectorized kernel makes NaN",
    },
    Excuse {
        names: &[
            "softmax",
            "log_softmax",
            "softmin",
            "Softmax",
            "LogSoftmax",
            "Softmin",
        ],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "a softmax of integers is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["lu_solve"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found.is_nan() && expected.is_infinite())
        },
        reason: "the solutions of a singular matrix are infinite, of which a product with a permutation makes NaN",
    },
    Excuse {
        names: &["matmul", "bmm", "linear", "Linear"],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "a product of two element types is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &[
            "det", "cholesky", "eigh", "eigvalsh", "lstsq", "qr", "slogdet", "solve", "svd",
            "svdvals",
        ],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "matrices of half precision or integers are refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["where"],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has(DType::U8),
        reason: "a condition of uint8 is deprecated in PyTorch",
    },
    Excuse {
        names: &[
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "ConvTranspose1d",
            "ConvTranspose2d",
            "ConvTranspose3d",
        ],
        kind: Kind::Refusal,
        when: |_, difference| difference.is_ours() && difference.text.contains("leaves nothing"),
        reason: "an image without pixels is refused, which PyTorch does for some element types",
    },
    Excuse {
        names: &[
            "conv1d",
            "conv2d",
            "conv_transpose2d",
            "matmul",
            "linear",
            "einsum",
            "Conv1d",
            "Conv2d",
            "ConvTranspose2d",
            "Linear",
        ],
        kind: Kind::Value,
        when: |call, difference| {
            !call.is_finite()
                && difference
                    .floats_are(|found, expected| !found.is_finite() || !expected.is_finite())
        },
        reason: "where infinities and NaN of an input go, through padding and blocks of a product, PyTorch decides by \
                 element type and size",
    },
    Excuse {
        names: &[
            "layer_norm",
            "group_norm",
            "batch_norm",
            "rms_norm",
            "LayerNorm",
            "GroupNorm",
            "BatchNorm1d",
            "BatchNorm2d",
            "RMSNorm",
            "nll_loss",
            "cross_entropy",
            "CrossEntropyLoss",
            "sum",
            "mean",
            "var",
            "std",
            "cumsum",
            "einsum",
            "matmul",
            "linear",
            "lstm",
            "LSTM",
            "scaled_dot_product_attention",
            "MultiheadAttention",
            "cosine_similarity",
            "conv1d",
            "conv2d",
            "conv_transpose2d",
            "Conv1d",
            "Conv2d",
            "ConvTranspose2d",
            "avg_pool2d",
            "adaptive_avg_pool2d",
            "AvgPool2d",
            "AdaptiveAvgPool2d",
            "mse_loss",
            "l1_loss",
            "MSELoss",
            "softmax",
            "log_softmax",
            "Linear",
            "LoraLinear",
            "Int8Linear",
            "Sequential",
            "tanhshrink",
            "Tanhshrink",
            "InstanceNorm1d",
            "slogdet",
            "var_mean",
            "std_mean",
        ],
        kind: Kind::Value,
        when: |call, difference| {
            call.has(DType::F64)
                && difference.floats_are(|found, expected| {
                    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
                })
        },
        reason: "PyTorch's float64 result is no nearer to the truth than ours where terms cancel: they are added in \
                 another order",
    },
    Excuse {
        names: &["conv1d", "conv2d", "Conv1d", "Conv2d"],
        kind: Kind::Value,
        when: |call, difference| {
            call.has(DType::BF16)
                && call.is_finite()
                && difference.floats_are(|found, _| found.is_finite())
        },
        reason: "PyTorch 2.15 gives NaN and numbers like 5e24 for some grouped bfloat16 convolutions of small numbers",
    },
    Excuse {
        names: &[
            "cross_entropy",
            "CrossEntropyLoss",
            "nll_loss",
            "mse_loss",
            "MSELoss",
            "l1_loss",
            "L1Loss",
            "NLLLoss",
            "smooth_l1_loss",
            "huber_loss",
            "SmoothL1Loss",
            "HuberLoss",
            "cosine_embedding_loss",
            "CosineEmbeddingLoss",
            "prod",
        ],
        kind: Kind::Value,
        when: |call, difference| call.has(DType::F16) && difference.overflowed_in_pytorch(),
        reason: "a loss or a product is computed in float32 and rounded once; PyTorch's float16 overflows on the way",
    },
    Excuse {
        names: &[
            "layer_norm",
            "group_norm",
            "batch_norm",
            "rms_norm",
            "LayerNorm",
            "GroupNorm",
            "BatchNorm1d",
            "BatchNorm2d",
            "RMSNorm",
        ],
        kind: Kind::Value,
        when: |call, _| call.largest() > 1e18,
        reason: "a variance of numbers whose squares overflow float32 is infinite, or not, by the lanes of PyTorch's kernel",
    },
    Excuse {
        names: &["mod", "floordiv"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found.is_finite() && expected.is_nan())
        },
        reason: "the rest of a division whose quotient overflows is a number, which PyTorch's vectorized kernel misses",
    },
    Excuse {
        names: &["truediv"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found == 0.0 && expected.is_nan())
        },
        reason: "0 divided by a subnormal number is 0; PyTorch multiplies 0 by its reciprocal, which is infinite",
    },
    Excuse {
        names: &["rand_like", "randn_like", "bernoulli"],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "random integers are refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["linspace", "logspace"],
        kind: Kind::Refusal,
        when: |_, difference| difference.is_ours() && difference.text.contains("in a row"),
        reason: "a row of truth values is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["full", "full_like", "new_full"],
        kind: Kind::Refusal,
        when: |_, difference| difference.is_ours() && difference.text.contains("is beyond what"),
        reason: "a number beyond the type is refused, which PyTorch does only where there are several elements",
    },
    Excuse {
        names: &["index_add"],
        kind: Kind::Refusal,
        when: |call, difference| !difference.is_ours() && call.has_no_elements(),
        reason: "no index into a tensor without elements is looked at, whatever its type",
    },
    Excuse {
        names: &["index_put"],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "an index out of range is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["pinv"],
        kind: Kind::Refusal,
        when: |call, difference| difference.is_ours() && call.has_no_elements(),
        reason: "a symmetric matrix that is not square is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["cosine_embedding_loss", "CosineEmbeddingLoss"],
        kind: Kind::Value,
        when: |call, difference| {
            !call.has(DType::F64)
                && difference.floats_are(|found, expected| (found - expected).abs() <= 2.4e-7)
        },
        reason: "1 less a cosine near 1 is a step of 1, in whichever way the cosine was rounded",
    },
    Excuse {
        names: &["i0", "i1"],
        kind: Kind::Value,
        when: |_, difference| difference.overflowed_in_pytorch(),
        reason: "an exponential is computed in float64 and rounded once with its factor; PyTorch's overflows on the way",
    },
    Excuse {
        names: &["std", "var"],
        kind: Kind::Value,
        when: |_, difference| difference.overflowed_in_pytorch(),
        reason: "a variance is computed from wide sums and rounded once; PyTorch's overflows on the way",
    },
    Excuse {
        names: &["lerp"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| !found.is_finite() && expected.abs() > 1e38)
        },
        reason: "a step beyond what float32 holds is infinite; PyTorch adds it in one fused operation, unrounded",
    },
    Excuse {
        names: &["layer_norm", "LayerNorm"],
        kind: Kind::Value,
        when: |call, difference| {
            call.has(DType::F64)
                && difference.floats_are(|found, expected| expected == 0.0 && found.abs() < 1e-8)
        },
        reason: "the norm of what does not vary is what its mean was rounded by, over the root of epsilon",
    },
    Excuse {
        names: &["unique"],
        kind: Kind::Value,
        when: |call, _| !call.is_finite(),
        reason: "each NaN is an element of its own; which of them comes first, PyTorch leaves open",
    },
    Excuse {
        names: &["addmv"],
        kind: Kind::Shape,
        when: |call, _| call.has_no_elements(),
        reason: "where the matrix has no rows, PyTorch gives the input as it is",
    },
    Excuse {
        names: &["corrcoef"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found.is_nan() && expected.abs() == 1.0)
        },
        reason: "what does not vary has the correlation NaN; PyTorch's may be 1, of what its mean was rounded by",
    },
    Excuse {
        names: &["std_mean", "var_mean"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found == 0.0 && expected.abs() < 1e-12)
        },
        reason: "a mean of 0 is 0, of which PyTorch's running mean may leave a rest",
    },
    Excuse {
        names: &["pow"],
        kind: Kind::Value,
        when: |_, difference| {
            difference.floats_are(|found, expected| found.is_nan() != expected.is_nan())
        },
        reason: "the square root of minus infinity is NaN or not by PyTorch's element type and size",
    },
];

/// The table, whole.
pub fn excuses() -> impl Iterator<Item = &'static Excuse> {
    OF_RESULTS.iter().chain(OF_GRADIENTS)
}

/// The reason that excuses a difference.
pub fn reason(call: &Call, difference: &Difference) -> Option<&'static str> {
    excuses()
        .find(|excuse| {
            excuse.kind == difference.kind
                && (excuse.names.is_empty() || excuse.names.contains(&call.name.as_str()))
                && (excuse.when)(call, difference)
        })
        .map(|excuse| excuse.reason)
}
