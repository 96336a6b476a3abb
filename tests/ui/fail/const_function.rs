#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub const fn f(x: &Tensor) -> Result<Tensor> {
    x + x
}

fn main() {}
