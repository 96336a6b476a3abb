#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method)]
pub fn zeros() -> Result<Tensor> {
    Ok(support::tensor("0"))
}

fn main() {}
