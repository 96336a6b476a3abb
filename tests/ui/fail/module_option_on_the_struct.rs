#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
#[module(buffer)]
pub struct Layer {
    pub mean: Tensor,
}

fn main() {}
