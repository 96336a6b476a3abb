#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(random = training)]
pub fn f(x: &Tensor, train: bool) -> Result<Tensor> {
    let _ = train;
    Ok(x.clone())
}

fn main() {}
