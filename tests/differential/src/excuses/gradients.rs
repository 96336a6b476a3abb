//! The deliberate differences of gradients from PyTorch's, each with its reason.

use fx_nn::value::DType;

use super::Excuse;
use crate::call::Arg;
use crate::judge::Kind;

/// Sums of products, whose terms may cancel.
const SUMS: &[&str] = &[
    "tanhshrink",
    "Tanhshrink",
    "multilabel_margin_loss",
    "MultiLabelMarginLoss",
    "log_softmax",
    "LogSoftmax",
    "triplet_margin_loss",
    "TripletMarginLoss",
    "expm1",
    "sinc",
    "Sequential",
    "rms_norm",
    "RMSNorm",
    "softsign",
    "Softsign",
    "pairwise_distance",
    "PairwiseDistance",
    "cosine_similarity",
    "CosineSimilarity",
    "cosine_embedding_loss",
    "CosineEmbeddingLoss",
    "corrcoef",
    "cov",
    "normalize",
    "multi_margin_loss",
    "MultiMarginLoss",
    "softmax",
    "Softmax",
    "softmin",
    "Softmin",
    "det",
    "TransformerDecoder",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
    "MultiheadAttention",
    "scaled_dot_product_attention",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "batch_norm",
    "layer_norm",
    "LayerNorm",
    "group_norm",
    "GroupNorm",
    "instance_norm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "cross_entropy",
    "CrossEntropyLoss",
    "var",
    "std",
    "var_mean",
    "std_mean",
    "atan2",
];

/// What attends.
const ATTENTION: &[&str] = &[
    "scaled_dot_product_attention",
    "MultiheadAttention",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
];

/// Differences of gradients.
pub(super) const OF_GRADIENTS: &[Excuse] = &[
    Excuse {
        names: &[],
        kind: Kind::Gradient,
        when: |_, difference| difference.is_of_rounding(),
        reason: "PyTorch's own gradient moves as far if each input that is at no bound moves by a step of its type",
    },
    Excuse {
        names: &[],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.is_far()
                && difference.floats_are(|found, expected| found.is_finite() && expected.is_nan())
        },
        reason: "of infinite, NaN or large numbers PyTorch's formula gives NaN, where ours gives a number",
    },
    Excuse {
        names: &[],
        kind: Kind::Gradient,
        when: |call, difference| {
            (call.is_far() || call.has_zeros() || difference.input == Some(1.0))
                && difference
                    .floats_are(|found, expected| !found.is_finite() && !expected.is_finite())
        },
        reason: "of infinite, NaN or large numbers, beside zeros of either sign and at 1, a slope without bound is infinite \
                 or NaN, and of either sign, by the order of the operations",
    },
    Excuse {
        names: &[
            "elu",
            "ELU",
            "celu",
            "CELU",
            "selu",
            "SELU",
            "relu6",
            "ReLU6",
            "hardtanh",
            "Hardtanh",
            "hardswish",
            "Hardswish",
            "leaky_relu",
            "LeakyReLU",
            "hardshrink",
            "Hardshrink",
            "softshrink",
            "Softshrink",
        ],
        kind: Kind::Gradient,
        when: |_, difference| difference.input.is_some_and(f64::is_nan),
        reason: "the slope at NaN, PyTorch decides by the lanes of its kernel",
    },
    Excuse {
        names: &["hardsigmoid", "Hardsigmoid"],
        kind: Kind::Gradient,
        when: |_, difference| difference.differs_by(4e-8),
        reason: "a sixth is rounded to float32 in PyTorch's kernel of float64",
    },
    Excuse {
        names: &["celu", "CELU"],
        kind: Kind::Gradient,
        when: |_, difference| difference.differs_by(1e-4),
        reason: "one over alpha is rounded to float32 in PyTorch's kernel of float64",
    },
    Excuse {
        names: &["addcmul", "addcdiv", "atan2", "pow"],
        kind: Kind::Gradient,
        when: |call, _| call.has_integers(),
        reason: "PyTorch's gradient multiplies and negates integers in their own type, which overflows, or in float32",
    },
    Excuse {
        names: &["ctc_loss", "CTCLoss"],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.is_far()
                || difference.floats_are(|found, expected| (found - expected).is_finite())
                || difference.floats_are(|found, expected| found == 0.0 && expected.is_nan())
        },
        reason: "PyTorch's gradient of the log-probabilities is that of the scores that log_softmax made them of, which \
                 overflows for what is no probability; ours is that of the log-probabilities, which log_softmax makes \
                 the same",
    },
    Excuse {
        names: &[
            "kl_div",
            "KLDivLoss",
            "poisson_nll_loss",
            "PoissonNLLLoss",
            "logit",
        ],
        kind: Kind::Gradient,
        when: |_, difference| {
            difference.floats_are(|found, expected| found.is_finite() && expected.is_nan())
        },
        reason: "a logarithm that is not used, of a target of 0 or a number outside of [0, 1], has no part in the gradient, \
                 of which PyTorch makes NaN",
    },
    Excuse {
        names: &["std", "var", "std_mean", "var_mean"],
        kind: Kind::Gradient,
        when: |call, _| {
            call.args
                .iter()
                .any(|arg| matches!(arg, Arg::List(dims) if dims.is_empty()))
        },
        reason: "no dims stand for all of them, which PyTorch's gradient counts as one element",
    },
    Excuse {
        names: &[
            "layer_norm",
            "LayerNorm",
            "group_norm",
            "GroupNorm",
            "rms_norm",
            "RMSNorm",
            "batch_norm",
            "BatchNorm1d",
            "BatchNorm2d",
            "BatchNorm3d",
            "instance_norm",
            "InstanceNorm1d",
            "InstanceNorm2d",
            "InstanceNorm3d",
        ],
        kind: Kind::Gradient,
        when: |call, _| call.largest() > 1e150,
        reason: "a variance of numbers whose squares overflow is infinite, and the normalised elements are 0 or NaN",
    },
    Excuse {
        names: &[
            "topk",
            "quantile",
            "nanquantile",
            "median",
            "nanmedian",
            "kthvalue",
            "mode",
            "sort",
            "msort",
        ],
        kind: Kind::Gradient,
        when: |call, _| call.has_ties(),
        reason: "which of several equal elements is picked, PyTorch leaves open",
    },
    Excuse {
        names: &[
            "eigh",
            "eigvalsh",
            "svd",
            "svdvals",
            "qr",
            "lstsq",
            "pinv",
            "pinverse",
            "matrix_norm",
            "det",
            "slogdet",
            "inv",
            "inverse",
            "solve",
            "cholesky",
            "cond",
            "householder_product",
            "lu",
            "lu_factor",
            "lu_solve",
            "matrix_rank",
        ],
        kind: Kind::Gradient,
        when: |call, _| call.is_far() || call.has_degenerate_matrices(),
        reason: "of a singular matrix, or one with equal singular values, there are several gradients, or none",
    },
    Excuse {
        names: &[
            "lstm",
            "LSTM",
            "gru",
            "GRU",
            "lstm_cell",
            "LSTMCell",
            "gru_cell",
            "GRUCell",
            "rnn_tanh",
            "RNN",
            "rnn_tanh_cell",
            "RNNCell",
        ],
        kind: Kind::Gradient,
        when: |_, difference| difference.differs_by(1e-4) || difference.is_less_than(1e-8),
        reason: "the slope of a saturated tanh, 1 less a square near 1, keeps few digits in either",
    },
    Excuse {
        names: &["batch_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"],
        kind: Kind::Gradient,
        when: |call, _| call.has_views(),
        reason: "PyTorch's backward reads a weight or an input that is a view as if it lay in memory row by row",
    },
    Excuse {
        names: &["svd"],
        kind: Kind::Gradient,
        when: |call, _| call.args.iter().any(|arg| matches!(arg, Arg::Bool(true))),
        reason: "the singular vectors beyond the smaller side are free, and so is their gradient",
    },
    Excuse {
        names: &["quantile", "nanquantile"],
        kind: Kind::Gradient,
        when: |_, difference| difference.text.starts_with("tensor 1 "),
        reason: "the places of quantiles are numbers, which have no gradient",
    },
    Excuse {
        names: ATTENTION,
        kind: Kind::Gradient,
        when: |call, difference| {
            call.is_far()
                && difference
                    .floats_are(|found, expected| !found.is_finite() || !expected.is_finite())
        },
        reason: "a product of 0 and infinity is NaN, or not there, by how a product of matrices is blocked",
    },
    Excuse {
        names: ATTENTION,
        kind: Kind::Gradient,
        when: |call, difference| {
            difference.differs_by(1e-7)
                || difference.is_less_than(1e-12 * call.scale())
                || call.is_far() && difference.differs_by(1e-1)
        },
        reason: "the slopes of a saturated softmax are differences of equal numbers, which keep few digits in either",
    },
    Excuse {
        names: &["log_ndtr"],
        kind: Kind::Gradient,
        when: |call, _| call.is_far(),
        reason: "far below 0 PyTorch's slope of a share's logarithm is a quotient of numbers without digits",
    },
    Excuse {
        names: &["lstsq", "pinv", "pinverse"],
        kind: Kind::Gradient,
        when: |_, difference| difference.floats_are(|found, _| found.is_finite()),
        reason: "how far the residuals and the rank's cut move, PyTorch leaves out of the gradient",
    },
    Excuse {
        names: &["scatter_reduce"],
        kind: Kind::Gradient,
        when: |call, _| {
            call.has_ties() && call.args.iter().any(|arg| matches!(arg, Arg::Bool(false)))
        },
        reason: "an element that is not included has a share of PyTorch's gradient where it equals the result, which is lost",
    },
    Excuse {
        names: &["prod", "cumprod"],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.is_far()
                && difference
                    .floats_are(|found, expected| found.is_finite() && !expected.is_finite())
        },
        reason: "PyTorch's gradient divides a product that has overflowed by a factor; ours multiplies the others",
    },
    Excuse {
        names: &["prod", "cumprod"],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.is_far()
                && call.has_zeros()
                && difference.floats_are(|found, expected| found.is_nan() && expected.is_finite())
        },
        reason: "a product that has a zero is 0 in PyTorch's gradient, also beside an infinite or NaN factor",
    },
    Excuse {
        names: &["sinc"],
        kind: Kind::Gradient,
        when: |_, difference| {
            difference.input.is_some_and(|x| {
                x.abs() < 0.1
                    && difference
                        .floats_are(|found, expected| (found - expected).abs() < 1e-14 / x.abs())
            })
        },
        reason: "near 0 PyTorch's slope is a difference of equal numbers over a small one; ours is a series",
    },
    Excuse {
        names: &["interpolate", "interpolate_with", "Upsample"],
        kind: Kind::Gradient,
        when: |call, _| call.resizes_by_a_part(),
        reason: "where a size stays or doubles, PyTorch's backward picks pixels by the sizes, its forward by the factor",
    },
    Excuse {
        names: &[
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "Conv1d",
            "Conv2d",
            "Conv3d",
            "ConvTranspose1d",
            "ConvTranspose2d",
            "ConvTranspose3d",
            "bmm",
            "matmul",
            "linear",
            "Linear",
            "einsum",
            "lp_pool1d",
            "lp_pool2d",
            "LPPool1d",
            "LPPool2d",
            "multilabel_soft_margin_loss",
            "MultiLabelSoftMarginLoss",
        ],
        kind: Kind::Gradient,
        when: |call, difference| difference.is_less_than(1e-13 * call.largest()),
        reason: "a sum of very large numbers has lost the small ones, by the order in which they are added",
    },
    Excuse {
        names: &["block_diag"],
        kind: Kind::Gradient,
        when: |call, _| call.has_no_elements(),
        reason: "PyTorch's backward passes over the rows and columns of a matrix without elements",
    },
    Excuse {
        names: &["bmm", "matmul"],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.has_no_elements() && difference.text.contains("convert one with")
        },
        reason: "a product of two element types is refused, which PyTorch does only where there are elements",
    },
    Excuse {
        names: &["kl_div", "KLDivLoss"],
        kind: Kind::Gradient,
        when: |call, difference| {
            call.has_no_elements()
                && difference.floats_are(|found, expected| found.is_nan() && expected == 0.0)
        },
        reason: "the logarithm of a negative target is NaN, also where its share of the loss has no elements",
    },
    Excuse {
        names: &["scatter_reduce"],
        kind: Kind::Gradient,
        when: |call, _| call.count_of(1) < call.count_of(2),
        reason: "PyTorch spreads the gradient of the elements that are scattered over those of the source that are not",
    },
    Excuse {
        names: &[
            "layer_norm",
            "LayerNorm",
            "group_norm",
            "GroupNorm",
            "instance_norm",
            "InstanceNorm1d",
            "InstanceNorm2d",
            "InstanceNorm3d",
            "TransformerDecoder",
            "TransformerDecoderLayer",
            "TransformerEncoder",
            "TransformerEncoderLayer",
        ],
        kind: Kind::Gradient,
        when: |_, difference| {
            difference.floats_are(|found, expected| {
                (found == 0.0 || expected == 0.0) && (found - expected).abs() < 1e-9
            })
        },
        reason: "the norm of one element, or of equal ones, has no slope, of which what was rounded may be left",
    },
    Excuse {
        names: &["cdist"],
        kind: Kind::Gradient,
        when: |call, _| call.has_ties(),
        reason: "which of several equal differences is the largest, PyTorch leaves open",
    },
    Excuse {
        names: &[
            "triplet_margin_loss",
            "TripletMarginLoss",
            "pairwise_distance",
            "PairwiseDistance",
            "norm",
            "vector_norm",
            "normalize",
            "cosine_similarity",
            "CosineSimilarity",
            "cdist",
            "logcumsumexp",
            "logsumexp",
        ],
        kind: Kind::Gradient,
        when: |call, _| call.is_far() || call.is_tiny(),
        reason: "squares and exponentials of very large and very small numbers overflow, or are 0",
    },
    Excuse {
        names: &["where"],
        kind: Kind::Gradient,
        when: |call, _| call.has(DType::U8),
        reason: "a condition of uint8 is deprecated in PyTorch",
    },
    Excuse {
        names: &["MultiheadAttention"],
        kind: Kind::Gradient,
        when: |_, difference| difference.text.contains("was specialised"),
        reason: "a layer is opened for the arguments that are its defaults, and says so when others come",
    },
    Excuse {
        names: SUMS,
        kind: Kind::Gradient,
        when: |call, difference| difference.is_less_than(1e-14 * call.scale()),
        reason: "where terms of a sum cancel, what is left is what they were rounded by",
    },
];
