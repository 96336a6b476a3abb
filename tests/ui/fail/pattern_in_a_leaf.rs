#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(Tensor { text, .. }: &Tensor) -> Result<Tensor> {
    Ok(support::tensor(text.clone()))
}

pub fn leaf() -> fx_core::ir::Function {
    function!(f)
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(&f(x)?)
}

fn main() {}
