//! Operations on tensors under PyTorch's names, each a leaf: `x.relu()` records a method, `relu(&x)` a function.

mod conv;
mod create;
mod matrix;
mod norm;
mod pointwise;
mod pool;
mod reduce;
mod shape;
mod views;

pub use conv::conv2d;
pub use create::{ones, rand, zeros};
pub use matrix::{linear, matmul};
pub use norm::{batch_norm, log_softmax, softmax};
pub use pointwise::{clamp, dropout, exp, maximum, minimum, neg, relu, sigmoid, silu, tanh};
pub use pool::{adaptive_avg_pool2d, avg_pool2d, max_pool2d};
pub use reduce::{amax, amin, max, mean, sum, topk};
pub use shape::{cat, flatten, size, stack};
pub use views::{chunk, expand, permute, reshape, split, squeeze, t, transpose, unsqueeze, view};
