#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    if x.sum()? > 0.0 {
        return x + 1.0;
    }
    x * x
}

fn main() {}
