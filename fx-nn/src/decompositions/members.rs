//! The members of the core set, a family a table.

use fx_core::passes::CoreSet;
use fx_core::{function, function_table};

use crate::models::hf::mamba;
use crate::{control, ops};

/// Members, by their paths in [`ops`].
macro_rules! members {
    ($($($function:ident)::+),+ $(,)?) => {
        ::fx_core::function_table! { ::fx_core::passes::CoreSet {
            $(::fx_core::function!(ops::$($function)::+) => ::fx_core::passes::CoreSet::Member),+
        } }
    };
}

// Element by element.
members! {
    acos, acosh, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not,
    bitwise_or, bitwise_right_shift, bitwise_xor, ceil, clamp, copysign, cos, cosh, erf, erfc,
    erfinv, exp, expm1, floor, floor_divide, fmod, gcd, hypot, isclose, isfinite, isinf, isnan, lcm,
    log, log1p, logaddexp, logaddexp2, logical_and, logical_not, logical_or, mask_scores,
    masked_fill, maximum, minimum, nan_to_num, prelu, reciprocal, relu, remainder, round, rsqrt,
    sigmoid, sign, signbit, sin, sinh, sqrt, tan, tanh, to_device, to_dtype, trunc, type_as,
    r#where, xlogy,
}

// Along dims.
members! {
    all, allclose, amax, amin, any, argmax, argmin, corrcoef, cov, cummax, cummin, cumprod, cumsum,
    diff, equal, kthvalue, linalg::matrix_norm, logcumsumexp,
    logsumexp, max, mean, median, min, mode,
    nanmedian, nanquantile, prod, quantile, sort, sum, topk, var,
}

// Views and joins.
members! {
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_tensors, cartesian_prod, cat, chunk,
    column_stack, combinations, diag, diag_embed, diagonal, dstack, expand, flatten, flip, hsplit,
    hstack, meshgrid, movedim, narrow, pad, permute, pixel_shuffle, pixel_unshuffle, repeat,
    repeat_interleave, reshape, roll, rot90, select, size, split, split_with_sizes, squeeze, t,
    tensor_split, tile, transpose, tril, triu, unbind, unflatten, unsqueeze, vstack,
}

// Picks and scatters.
members! {
    argwhere, bincount, bucketize, diagonal_scatter, embedding, gather, histc, index_add,
    index_copy, index_fill, index_put, index_select, isin, masked_scatter, masked_select, nonzero,
    one_hot, scatter, scatter_add, scatter_reduce, scatter_value, searchsorted, select_scatter,
    slice_scatter, take, take_along_dim, unique, unique_consecutive,
}

// Products.
members! {
    bilinear, cdist, cross, einsum, inner, kron, linear, linalg::matrix_power, matmul, tensordot,
    tensordot_dims, vander,
}

// Windows and pictures.
members! {
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d, adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d, adaptive_max_pool3d_with_indices, affine_grid, avg_pool1d, avg_pool2d,
    avg_pool3d, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold,
    grid_sample, interpolate, interpolate_with, local_response_norm, lp_pool1d, lp_pool2d, max_pool1d,
    max_pool1d_with_indices, max_pool2d, max_pool2d_with_indices, max_pool3d,
    max_pool3d_with_indices, max_unpool1d, max_unpool2d, max_unpool3d, unfold,
}

// Norms with running statistics, cells, and losses of classes and of probabilities, which refuse other numbers.
members! {
    batch_norm, binary_cross_entropy, cross_entropy, ctc_loss, gaussian_nll_loss, gru, gru_cell, instance_norm, lstm, lstm_cell,
    multi_margin_loss, multilabel_margin_loss, nll_loss, rnn_relu, rnn_relu_cell, rnn_tanh,
    rnn_tanh_cell,
}

// New tensors.
members! {
    arange, eye, full, full_like, linspace, logspace, new_full, tril_indices, triu_indices,
}

// Random numbers.
members! {
    alpha_dropout, bernoulli, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout,
    multinomial, normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm, rrelu,
    stochastic_depth,
}

// Factorizations and transforms.
members! {
    fft::fft, fft::fft2, fft::fftn, fft::fftshift, fft::ifft, fft::ifft2, fft::ifftn,
    fft::ifftshift, fft::irfft, fft::rfft, linalg::cholesky, linalg::det, linalg::eigh,
    linalg::eigvalsh, linalg::inv, linalg::inverse, linalg::lstsq, linalg::pinv, linalg::pinverse,
    linalg::qr, linalg::slogdet, linalg::solve, linalg::svd, linalg::svdvals,
}

// Functions outside of `ops`.
function_table! { CoreSet {
    function!(control::stacked) => CoreSet::Member,
    function!(mamba::selective_scan) => CoreSet::Member,
} }
