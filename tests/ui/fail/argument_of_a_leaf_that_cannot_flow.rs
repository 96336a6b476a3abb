#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(x: &Tensor, size: u8) -> Result<Tensor> {
    x + i64::from(size)
}

fn main() {}
