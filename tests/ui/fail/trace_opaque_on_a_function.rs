#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace(opaque)]
pub fn f(x: &Tensor) -> Result<Tensor> {
    x + x
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(&f(x)?)
}

fn main() {}
