#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(x: &Tensor, scale: impl Copy) -> Result<Tensor> {
    Ok((x.clone(), scale).0)
}

fn main() {}
