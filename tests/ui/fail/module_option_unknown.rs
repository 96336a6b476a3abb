#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer {
    #[module(bufer)]
    pub mean: Tensor,
}

fn main() {}
