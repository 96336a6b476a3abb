#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, n: i64) -> Result<Tensor> {
    assert!(n > 3 n);
    x * x
}

fn main() {}
