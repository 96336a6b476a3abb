//! Models under torchvision's names and structure, so that its checkpoints load.

pub mod mlp;
pub mod resnet;
pub mod vgg;
