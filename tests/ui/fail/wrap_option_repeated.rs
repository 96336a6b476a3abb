#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(random, method, random)]
pub fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

pub fn leaf() -> fx_core::ir::Function {
    function!(f)
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(x)?.f()
}

fn main() {}
