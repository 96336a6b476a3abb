#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub enum Layer {
    Weight(Tensor),
    Since(std::time::Instant),
}

fn main() {}
