#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, mut n: usize) -> Result<Tensor> {
    if n = 3 { Ok(x.clone()) } else { x * x }
}

fn main() {}
