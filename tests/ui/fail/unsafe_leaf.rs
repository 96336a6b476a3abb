#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub unsafe fn f(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

pub fn leaf() -> fx_core::ir::Function {
    function!(f)
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    unsafe { f(x) }
}

fn main() {}
