#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub struct Layer {
    pub weight: Tensor,
}

fn main() {}
