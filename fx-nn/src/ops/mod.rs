//! Operations on tensors under PyTorch's names, each a leaf: `x.relu()` records a method, `relu(&x)` a function.

mod activation;
mod attention;
mod blend;
mod blocks;
mod candle_names;
mod channels;
mod compare;
mod conv;
mod couples;
mod create;
mod ctc;
mod diagonals;
mod dims;
mod distance;
mod draw;
mod dropouts;
mod elementary;
pub mod fft;
mod join;
pub mod linalg;
mod loss;
mod margins;
mod matrix;
mod norms;
mod order;
mod padding;
mod pieces;
mod pointwise;
mod pool;
mod pooling;
mod products;
mod recurrent;
mod reduce;
mod resample;
mod rnn;
mod scan;
mod scattering;
mod selection;
mod shape;
mod shrink;
mod sizes;
mod sorting;
mod statistics;
mod views;
mod volumes;

pub use activation::{
    celu, dropout, elu, gelu, leaky_relu, logsigmoid, mish, relu, relu6, selu, sigmoid, silu,
    softplus, softsign, tanh, tanhshrink,
};
pub use attention::{cosine_similarity, mask_scores, scaled_dot_product_attention};
pub use blend::{addcdiv, addcmul, clip, lerp};
pub use blocks::{
    affine_grid, channel_shuffle, fold, grid_sample, pixel_shuffle, pixel_unshuffle, unfold,
};
pub use candle_names::{ABoxedModule, AFunction, AModule, AnOption, Apply, D};
pub use channels::{instance_norm, local_response_norm};
pub use compare::{allclose, equal, isclose, isinf, isneginf, isposinf, nan_to_num, signbit};
pub use conv::{conv_transpose2d, conv1d, conv2d};
pub use couples::{
    atan2, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
    bitwise_xor, copysign, floor_divide, fmax, fmin, fmod, gcd, heaviside, hypot, lcm, logaddexp,
    logaddexp2, logical_and, logical_not, logical_or, logical_xor, remainder, xlogy,
};
pub use create::{
    arange, empty, empty_like, eye, full, full_like, linspace, logspace, new_empty, new_full,
    new_ones, new_zeros, ones, ones_like, tril_indices, triu_indices, zeros, zeros_like,
};
pub use ctc::ctc_loss;
pub use diagonals::{diag, diag_embed, diagflat, diagonal, trace};
pub use dims::{
    atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, broadcast_to, moveaxis, movedim, narrow,
    ravel, select, swapaxes, swapdims, unflatten,
};
pub use distance::{cdist, pairwise_distance};
pub use draw::{
    bernoulli, multinomial, normal, rand, rand_like, randint, randint_like, randn, randn_like,
    randperm,
};
pub use dropouts::{
    alpha_dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, stochastic_depth,
};
pub use elementary::{
    absolute, acos, acosh, asin, asinh, atan, atanh, ceil, cosh, deg2rad, erfc, erfinv, exp2,
    expm1, fix, floor, frac, log1p, log2, log10, logit, positive, rad2deg, round, sgn, sign, sinc,
    sinh, tan, trunc,
};
pub use join::{
    block_diag, cartesian_prod, column_stack, combinations, dstack, hstack, meshgrid, row_stack,
    vstack,
};
pub use loss::{cross_entropy, l1_loss, mse_loss, nll_loss};
pub use margins::{
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss,
    gaussian_nll_loss, hinge_embedding_loss, huber_loss, kl_div, margin_ranking_loss,
    multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, poisson_nll_loss,
    smooth_l1_loss, soft_margin_loss, triplet_margin_loss,
};
pub use matrix::{einsum, linear, matmul};
pub use norms::{batch_norm, group_norm, layer_norm, log_softmax, rms_norm, softmax};
pub use order::{flip, fliplr, flipud, repeat, repeat_interleave, roll, rot90, tile};
pub use padding::pad;
pub use pieces::{dsplit, hsplit, tensor_split, vsplit};
pub use pointwise::{
    clamp, cos, erf, exp, isfinite, isnan, log, maximum, minimum, neg, reciprocal, rsqrt, sin,
    sqrt, square, to_device, to_dtype, type_as,
};
pub use pool::{adaptive_avg_pool2d, avg_pool2d, max_pool2d};
pub use pooling::{
    adaptive_avg_pool1d, adaptive_avg_pool3d, adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d, adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d, adaptive_max_pool3d_with_indices, avg_pool1d, avg_pool3d, lp_pool1d,
    lp_pool2d, max_pool1d, max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d,
    max_pool3d_with_indices, max_unpool1d, max_unpool2d, max_unpool3d,
};
pub(crate) use products::in_cheapest_order;
pub use products::{
    addbmm, addmm, addmv, addr, baddbmm, bilinear, bmm, chain_matmul, cross, dot, ger, inner, kron,
    mm, multi_dot, mv, outer, tensordot, tensordot_dims, vander, vdot,
};
pub use recurrent::{gru, gru_cell, lstm_cell, rnn_relu, rnn_relu_cell, rnn_tanh, rnn_tanh_cell};
pub use reduce::{amax, amin, argmax, argmin, cumsum, max, mean, min, std, sum, topk, var};
pub use resample::{interpolate, interpolate_with};
pub use rnn::lstm;
pub use scan::{
    cummax, cummin, cumprod, diff, logcumsumexp, logsumexp, norm, normalize, prod, vector_norm,
};
pub use scattering::{
    diagonal_scatter, index_add, index_copy, index_fill, index_put, masked_scatter, scatter,
    scatter_add, scatter_reduce, scatter_value, select_scatter, slice_scatter,
};
pub use selection::{embedding, gather, index_select, masked_fill, one_hot, tril, triu, r#where};
pub use shape::{cat, flatten, stack};
pub use shrink::{
    glu, hardshrink, hardsigmoid, hardswish, hardtanh, prelu, rrelu, softmin, softshrink, threshold,
};
pub use sizes::size;
pub use sorting::{
    argsort, argwhere, bincount, bucketize, isin, masked_select, msort, nonzero, searchsorted,
    sort, take, take_along_dim, unique, unique_consecutive,
};
pub use statistics::{
    all, aminmax, any, corrcoef, count_nonzero, cov, histc, kthvalue, median, mode, nanmean,
    nanmedian, nanquantile, nansum, quantile, std_mean, var_mean,
};
pub use views::{
    chunk, contiguous, expand, permute, reshape, split, split_with_sizes, squeeze, t, transpose,
    unbind, unsqueeze, view,
};
pub use volumes::{conv_transpose1d, conv_transpose3d, conv3d};
