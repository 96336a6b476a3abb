//! Pure tensor kernels: PyTorch's semantics written with differentiable candle operations.

pub mod activation;
pub mod attention;
pub mod avg_pool;
pub mod binary;
pub mod blend;
pub mod chain;
pub mod conv;
pub mod conv_transpose;
pub mod cosine;
pub mod couples;
pub mod curve;
pub mod dim;
pub mod einsum;
pub mod elementary;
pub mod expand;
pub mod fold;
pub mod index;
pub mod integers;
pub mod lanes;
pub mod layer_norm;
pub mod loss;
pub mod lstm;
pub mod margins;
pub mod matmul;
pub mod max_pool;
pub mod norm;
pub mod norms;
pub mod numbers;
pub mod pointwise;
pub mod ranks;
pub mod reduce;
pub mod resample;
pub mod scan;
pub mod select;
pub mod shape;
pub mod shrink;
pub mod softmax;
pub mod topk;
pub mod view;
pub mod widen;
pub mod window;

#[cfg(test)]
pub mod testing;
