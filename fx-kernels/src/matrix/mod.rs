//! Products of matrices: linear layers with packed weights, and batches of products of matrices
//! with strides.

mod batched;
mod block_kind;
mod blocks;
mod few_blocks;
pub(crate) mod finish;
mod gemv;
#[cfg(target_arch = "x86_64")]
mod integers;
mod linear;
mod packed;
pub(crate) mod panels;
pub(crate) mod product;
mod strips;
pub(crate) mod tile;
mod words;

pub use batched::{Matrices, Sizes, matmul};
pub use block_kind::BlockKind;
pub use finish::{Finish, Order};
pub use linear::linear;
pub use packed::{PackedMatrix, WeightKind, WeightOrder, from_bf16, to_bf16};
