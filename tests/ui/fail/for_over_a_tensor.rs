#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let mut total = x.clone();
    for row in x {
        total = (total + row)?;
    }
    Ok(total)
}

fn main() {}
