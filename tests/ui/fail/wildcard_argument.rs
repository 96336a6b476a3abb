#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, _: &Tensor) -> Result<Tensor> {
    x + x
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(&f(x, x)?, x)
}

fn main() {}
