#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(pure)]
pub fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
