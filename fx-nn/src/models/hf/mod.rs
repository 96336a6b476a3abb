//! Models of Hugging Face's families, read from folders with `config.json` and weights, or from GGUF files, under
//! their checkpoints' names.

pub mod activation;
pub mod bert;
pub mod clip;
mod config;
pub mod decoder;
pub mod deepseek;
pub mod dinov2;
pub mod encoder;
pub mod encoder_decoder;
pub mod gguf;
pub mod gpt2;
pub mod mamba;
pub mod modernbert;
pub mod norm;
pub mod t5;
pub mod vit;
pub mod whisper;
