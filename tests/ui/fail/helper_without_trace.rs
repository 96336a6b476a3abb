#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    fn mask(x: &Tensor) -> Result<Tensor> {
        x > 0.5
    }
    mask(x)? * x
}

fn main() {}
