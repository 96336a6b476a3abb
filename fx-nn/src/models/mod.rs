//! Models under the names that public checkpoints have, and small ones that exercise one thing each.

pub mod activation;
pub mod alexnet;
pub mod autoencoder;
pub mod bert;
mod config;
pub mod decoder;
pub mod dict_out;
pub mod encoder_decoder;
pub mod gpt2;
pub mod lstm_classifier;
pub mod mamba;
pub mod mlp;
pub mod mobilenet;
pub mod nested;
pub mod norm;
pub mod resnet;
pub mod shared_sub;
pub mod siamese;
pub mod t5;
pub mod transformer;
pub mod tuple_out;
pub mod unet;
pub mod vgg;
pub mod vit;
pub mod whisper;
