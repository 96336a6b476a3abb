//! Models under the names that public checkpoints have, and small ones that exercise one thing each.

pub mod activation;
pub mod alexnet;
pub mod autoencoder;
pub mod bert;
pub mod bert_model;
pub mod clip;
mod config;
pub mod decoder;
pub mod dict_out;
pub mod dinov2;
pub mod encoder;
pub mod gpt2;
pub mod gpt2_lm;
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
pub mod vit_model;
