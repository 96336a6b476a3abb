#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub unsafe fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
