#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, positive: Bool) -> Result<Tensor> {
    if positive { Ok(x.clone()) } else { x * x }
}

fn main() {}
