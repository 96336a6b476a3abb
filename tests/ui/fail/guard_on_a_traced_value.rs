#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, n: i64) -> Result<Tensor> {
    match n {
        3 if x >= n => x * x,
        _ => Ok(x.clone()),
    }
}

fn main() {}
