#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(Tensor { text, .. }: &Tensor) -> Result<Tensor> {
    Ok(support::tensor(text.clone()))
}

fn main() {}
