#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub unsafe fn f(x: &Tensor) -> Result<Tensor> {
    x + x
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

fn main() {}
