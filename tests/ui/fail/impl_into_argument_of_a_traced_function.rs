#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, scale: impl Into<f64>) -> Result<Tensor> {
    x * scale.into()
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(&f(x, 2.0)?, 3.0)
}

fn main() {}
