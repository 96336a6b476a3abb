#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<f64> {
    Ok(x.text.len() as f64)
}

fn main() {}
