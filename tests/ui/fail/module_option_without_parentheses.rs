#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer {
    #[module]
    pub mean: Tensor,
}

fn main() {}
