#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor, std::fmt::Error> {
    x.relu().map_err(|_| std::fmt::Error)
}

fn main() {}
