#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let mask = (x > 0.0)?;
    if mask { Ok(x.clone()) } else { x * x }
}

fn main() {}
