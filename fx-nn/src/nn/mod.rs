//! Layers: structs with public fields, each a leaf for tracers by default, with PyTorch's names and defaults.

mod adaptive_avg_pool2d;
mod batch_norm2d;
mod conv2d;
mod dropout;
mod flatten;
mod grad;
mod identity;
mod init;
mod linear;
mod max_pool2d;
mod relu;
mod sequential;

pub use adaptive_avg_pool2d::AdaptiveAvgPool2d;
pub use batch_norm2d::BatchNorm2d;
pub use conv2d::{Conv2d, Conv2dOptions};
pub use dropout::Dropout;
pub use flatten::Flatten;
pub use grad::set_requires_grad;
pub use identity::Identity;
pub use linear::Linear;
pub use max_pool2d::MaxPool2d;
pub use relu::ReLU;
pub use sequential::Sequential;
