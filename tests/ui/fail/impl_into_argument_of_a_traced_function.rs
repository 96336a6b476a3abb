#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, scale: impl Into<f64>) -> Result<Tensor> {
    x * scale.into()
}

fn main() {}
