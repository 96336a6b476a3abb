#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<std::time::Duration> {
    Ok(std::time::Duration::from_secs(x.text.len() as u64))
}

fn main() {}
