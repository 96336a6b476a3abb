#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method)]
pub fn double(x: Tensor) -> Result<Tensor> {
    Ok(x)
}

fn main() {}
