#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, flag: bool) -> Result<Tensor> {
    let either = x.sum()? || flag;
    if either { Ok(x.clone()) } else { x * x }
}

fn main() {}
