#![doc = include_str!("../README.md")]

pub mod chat;
pub mod tokenizer;

pub use chat::{ChatOptions, ChatTemplate, Message};
pub use tokenizer::{DecodeStream, Tokenizer};
