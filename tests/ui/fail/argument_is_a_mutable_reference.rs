#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &mut Tensor) -> Result<Tensor> {
    *x = (&*x + 1.0)?;
    Ok(x.clone())
}

fn main() {}
