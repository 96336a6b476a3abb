#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer {
    pub weight: Tensor,
    pub since: std::time::Instant,
}

fn main() {}
