#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let n = 3i64;
    assert!(n, "no truth");
    x * x
}

fn main() {}
