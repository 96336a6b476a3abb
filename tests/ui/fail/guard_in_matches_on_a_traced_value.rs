#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, n: i64) -> Result<Tensor> {
    if matches!(n, 4 if (x != n)?) {
        x * x
    } else {
        x + 1.0
    }
}

fn main() {}
