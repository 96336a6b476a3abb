#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    while (&y < x)? {
        y = (y + 1.0)?;
    }
    Ok(y)
}

fn main() {}
