#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(x: &Tensor) -> Result<bool> {
    Ok(x.text.is_empty())
}

fn main() {}
