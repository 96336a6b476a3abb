#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f((x, y): (Tensor, Tensor)) -> Result<Tensor> {
    x + y
}

fn main() {}
