#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f((x, y): (Tensor, Tensor)) -> Result<Tensor> {
    x + y
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f((x.clone(), f((x.clone(), x.clone()))?))
}

fn main() {}
