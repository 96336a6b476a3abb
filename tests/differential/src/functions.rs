//! Every function of `fx_nn::ops`, called by its Rust signature as a program calls it, by name.

use fx_nn::prelude::*;
use fx_nn::{Bound, Number, Pair, Result, Scales, Sizes, TensorOrNumber};

use crate::args::Args;

/// A table of names and calls; every result becomes a value. A `for method` table ends in those that are methods.
macro_rules! calls {
    ($(#[$doc:meta])* $table:ident, $args:ident: $($name:literal => $call:expr,)*) => {
        $(#[$doc])*
        pub(crate) fn $table(name: &str, $args: &mut Args<'_>) -> Option<Result<Value>> {
            Some(match name {
                $($name => (|| Ok(fx_nn::value::IntoValue::into_value($call?)))(),)*
                _ => return None,
            })
        }
    };
}
pub(crate) use calls;

calls! {
    /// The call of a function, `None` where the name is unknown.
    function, a:
    "adaptive_avg_pool2d" => ops::adaptive_avg_pool2d(a.next()?, a.next::<Pair>()?),
    "amax" => ops::amax(a.next()?, a.next::<Dims>()?, a.next()?),
    "amin" => ops::amin(a.next()?, a.next::<Dims>()?, a.next()?),
    "argmin" => ops::argmin(a.next()?, a.next()?, a.next()?),
    "argmax" => ops::argmax(a.next()?, a.next()?, a.next()?),
    "avg_pool2d" => ops::avg_pool2d(a.next()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next()?, a.next()?),
    "batch_norm" => ops::batch_norm(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "cat" => ops::cat(&a.next::<Vec<Tensor>>()?, a.next()?),
    "chunk" => ops::chunk(a.next()?, a.next::<i64>()?, a.next()?),
    "clamp" => ops::clamp(a.next()?, a.next::<Bound>()?, a.next::<Bound>()?),
    "contiguous" => ops::contiguous(a.next()?),
    "conv1d" => ops::conv1d(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "conv2d" => ops::conv2d(a.next()?, a.next()?, a.next()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next()?),
    "conv_transpose2d" => ops::conv_transpose2d(a.next()?, a.next()?, a.next()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next()?, a.next::<Pair>()?),
    "cos" => ops::cos(a.next()?),
    "cosine_similarity" => ops::cosine_similarity(a.next()?, a.next()?, a.next()?, a.next()?),
    "cross_entropy" => ops::cross_entropy(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "cumsum" => ops::cumsum(a.next()?, a.next()?),
    "dropout" => ops::dropout(a.next()?, a.next()?, a.next()?),
    "einsum" => ops::einsum(a.next()?, &a.next::<Vec<Tensor>>()?),
    "elu" => ops::elu(a.next()?, a.next()?),
    "embedding" => ops::embedding(a.next()?, a.next()?, a.next()?),
    "erf" => ops::erf(a.next()?),
    "exp" => ops::exp(a.next()?),
    "expand" => ops::expand(a.next()?, a.next::<Sizes>()?),
    "flatten" => ops::flatten(a.next()?, a.next()?, a.next()?),
    "gather" => ops::gather(a.next()?, a.next()?, a.next()?),
    "gelu" => ops::gelu(a.next()?, a.next()?),
    "group_norm" => ops::group_norm(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "index_select" => ops::index_select(a.next()?, a.next()?, a.next()?),
    "interpolate" => ops::interpolate(a.next()?, a.next()?, a.next::<Scales>()?, a.next()?, a.next()?),
    "interpolate_with" => ops::interpolate_with(a.next()?, a.next()?, a.next::<Scales>()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "isfinite" => ops::isfinite(a.next()?),
    "isnan" => ops::isnan(a.next()?),
    "l1_loss" => ops::l1_loss(a.next()?, a.next()?, a.next()?),
    "layer_norm" => ops::layer_norm(a.next()?, a.next::<Shape>()?, a.next()?, a.next()?, a.next()?),
    "leaky_relu" => ops::leaky_relu(a.next()?, a.next()?),
    "linear" => ops::linear(a.next()?, a.next()?, a.next()?),
    "log" => ops::log(a.next()?),
    "log_softmax" => ops::log_softmax(a.next()?, a.next()?),
    "lstm" => ops::lstm(a.next()?, a.next()?, a.next()?, &a.next::<Vec<Tensor>>()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "mask_scores" => ops::mask_scores(a.next()?, a.next()?),
    "masked_fill" => ops::masked_fill(a.next()?, a.next()?, a.next::<Number>()?),
    "matmul" => ops::matmul(a.next()?, a.next()?),
    "min" => ops::min(a.next()?, a.next()?, a.next()?),
    "max" => ops::max(a.next()?, a.next()?, a.next()?),
    "max_pool2d" => ops::max_pool2d(a.next()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next::<Pair>()?, a.next()?),
    "maximum" => ops::maximum(a.next()?, a.next()?),
    "mean" => ops::mean(a.next()?, a.next::<Dims>()?, a.next()?),
    "minimum" => ops::minimum(a.next()?, a.next()?),
    "mse_loss" => ops::mse_loss(a.next()?, a.next()?, a.next()?),
    "neg" => ops::neg(a.next()?),
    "nll_loss" => ops::nll_loss(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?),
    "one_hot" => ops::one_hot(a.next()?, a.next()?),
    "permute" => ops::permute(a.next()?, a.next::<Dims>()?),
    "where" => ops::r#where(a.next()?, a.next::<TensorOrNumber>()?, a.next::<TensorOrNumber>()?),
    "reciprocal" => ops::reciprocal(a.next()?),
    "relu" => ops::relu(a.next()?),
    "relu6" => ops::relu6(a.next()?),
    "reshape" => ops::reshape(a.next()?, a.next::<Sizes>()?),
    "rms_norm" => ops::rms_norm(a.next()?, a.next::<Shape>()?, a.next()?, a.next()?),
    "rsqrt" => ops::rsqrt(a.next()?),
    "scaled_dot_product_attention" => ops::scaled_dot_product_attention(a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next()?, a.next::<Option<f64>>()?, a.next()?),
    "sigmoid" => ops::sigmoid(a.next()?),
    "silu" => ops::silu(a.next()?),
    "sin" => ops::sin(a.next()?),
    "size" => ops::size(a.next()?, a.next()?),
    "softmax" => ops::softmax(a.next()?, a.next()?),
    "split" => ops::split(a.next()?, a.next::<i64>()?, a.next()?),
    "split_with_sizes" => ops::split_with_sizes(a.next()?, a.next()?, a.next()?),
    "sqrt" => ops::sqrt(a.next()?),
    "square" => ops::square(a.next()?),
    "squeeze" => ops::squeeze(a.next()?, a.next()?),
    "stack" => ops::stack(&a.next::<Vec<Tensor>>()?, a.next()?),
    "std" => ops::std(a.next()?, a.next::<Dims>()?, a.next()?, a.next()?),
    "sum" => ops::sum(a.next()?, a.next::<Dims>()?, a.next()?),
    "t" => ops::t(a.next()?),
    "tanh" => ops::tanh(a.next()?),
    "to_device" => ops::to_device(a.next()?, a.next()?),
    "to_dtype" => ops::to_dtype(a.next()?, a.next()?),
    "type_as" => ops::type_as(a.next()?, a.next()?),
    "topk" => ops::topk(a.next()?, a.next::<i64>()?, a.next()?, a.next()?, a.next()?),
    "transpose" => ops::transpose(a.next()?, a.next()?, a.next()?),
    "tril" => ops::tril(a.next()?, a.next()?),
    "triu" => ops::triu(a.next()?, a.next()?),
    "unbind" => ops::unbind(a.next()?, a.next()?),
    "unsqueeze" => ops::unsqueeze(a.next()?, a.next()?),
    "var" => ops::var(a.next()?, a.next::<Dims>()?, a.next()?, a.next()?),
    "view" => ops::view(a.next()?, a.next::<Sizes>()?),
}
