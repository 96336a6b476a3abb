#![doc = include_str!("../README.md")]

pub mod chat;
pub mod engine;
pub mod tokenizer;

pub use chat::{ChatOptions, ChatTemplate, Message};
pub use engine::{Engine, EngineOptions, GenerationOptions};
pub use tokenizer::{DecodeStream, Tokenizer};
