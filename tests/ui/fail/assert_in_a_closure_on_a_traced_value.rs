#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let check = || assert!(x > 0.0, "must be positive");
    check();
    x * x
}

fn main() {}
