#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    assert!(x.sum()? > 0.0, "must be positive");
    x * x
}

fn main() {}
