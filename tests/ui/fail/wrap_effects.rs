#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(effects(reads, prints))]
pub fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[wrap(effects)]
pub fn g(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

#[wrap(random(reads))]
pub fn h(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
