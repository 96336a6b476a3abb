#![doc = include_str!("../README.md")]

pub mod tokenizer;

pub use tokenizer::{DecodeStream, Tokenizer};
