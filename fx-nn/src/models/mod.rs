//! Models: Hugging Face's families in [`hf`], and small ones that exercise one thing each.

pub mod alexnet;
pub mod autoencoder;
pub mod bert;
pub mod convnext;
pub mod dict_out;
pub mod gpt2;
pub mod hf;
pub mod lstm_classifier;
pub mod mlp;
pub mod mobilenet;
pub mod nested;
pub mod resnet;
pub mod shared_sub;
pub mod siamese;
pub mod transformer;
pub mod tuple_out;
pub mod unet;
pub mod vgg;
pub mod vit;
