#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method)]
pub fn double(x: Tensor) -> Result<Tensor> {
    Ok(x)
}

pub fn leaf() -> fx_core::ir::Function {
    function!(double)
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    double(double::method(x.clone())?)
}

fn main() {}
