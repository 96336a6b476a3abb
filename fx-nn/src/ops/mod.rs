//! Operations on tensors under PyTorch's names, each a leaf: `x.relu()` records a method, `relu(&x)` a function.

mod activation;
mod attention;
mod conv;
mod create;
mod loss;
mod matrix;
mod norm;
mod pointwise;
mod pool;
mod reduce;
mod resample;
mod rnn;
mod select;
mod shape;
mod sizes;
mod views;

pub use activation::{dropout, elu, gelu, leaky_relu, relu, relu6, sigmoid, silu, softplus, tanh};
pub use attention::{cosine_similarity, mask_scores, scaled_dot_product_attention};
pub use conv::{conv_transpose2d, conv1d, conv2d};
pub use create::{arange, ones, ones_like, rand, rand_like, randn, randn_like, zeros, zeros_like};
pub use loss::{cross_entropy, l1_loss, mse_loss, nll_loss};
pub use matrix::{einsum, linear, matmul};
pub use norm::{batch_norm, group_norm, layer_norm, log_softmax, rms_norm, softmax};
pub use pointwise::{
    clamp, cos, erf, exp, isfinite, isnan, log, maximum, minimum, neg, reciprocal, rsqrt, sin,
    sqrt, square, to_dtype, type_as,
};
pub use pool::{adaptive_avg_pool2d, avg_pool2d, max_pool2d};
pub use reduce::{amax, amin, argmax, cumsum, max, mean, std, sum, topk, var};
pub use resample::interpolate;
pub use rnn::lstm;
pub use select::{embedding, gather, index_select, masked_fill, one_hot, tril, triu, r#where};
pub use shape::{cat, flatten, stack};
pub use sizes::size;
pub use views::{
    chunk, contiguous, expand, permute, reshape, split, split_with_sizes, squeeze, t, transpose,
    unbind, unsqueeze, view,
};
