//! Convolutions, pools and the operations between them, on images whose channels lie in blocks of 16.
//!
//! [`Blocked`] holds images; [`Conv2d`] packs weights once and runs on them. A convolution that pads reads the halo of
//! its input instead of testing for edges, so whoever makes a [`Blocked`] asks its readers for their
//! [`halo`](Conv2d::halo).

mod blocked;
mod conv2d;
mod depthwise;
mod depthwise_weight;
mod direct;
mod eager;
mod elementwise;
mod epilogue;
mod first;
mod moved;
mod nchw;
mod pairs;
mod phases;
mod pool;
mod share;
mod spec;
mod tile;
mod windows;
mod winograd;

pub use self::depthwise_weight::{DepthwiseSizes, depthwise_weight};
pub use blocked::Blocked;
pub use conv2d::Conv2d;
pub use eager::grouped_nchw;
pub use elementwise::{activate, add, affine, concat_channels, resize_nearest, scale};
pub use epilogue::ConvFinish;
pub use moved::{pad, places, pointwise};
pub use pool::{PoolSpec, adaptive_average_pool, average_pool, global_average_pool, max_pool};
pub use spec::{ConvOptions, ConvSpec, reads_plain};
pub use windows::{WindowSizes, sum_windows, windows};
