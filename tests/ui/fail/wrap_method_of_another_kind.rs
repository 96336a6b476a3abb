#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method = inherent)]
pub fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
