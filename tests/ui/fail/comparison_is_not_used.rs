#![deny(unused_must_use)]

#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, n: i64) -> Result<Tensor> {
    n > 3;
    x * x
}

fn main() {}
