#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(#[default(1)] dim: i64, x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
