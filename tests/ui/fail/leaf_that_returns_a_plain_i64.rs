#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(x: &Tensor) -> Result<i64> {
    Ok(x.text.len() as i64)
}

fn main() {}
