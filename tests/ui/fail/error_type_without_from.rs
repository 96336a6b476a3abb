#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor, std::io::Error> {
    x.relu().map_err(std::io::Error::other)
}

fn main() {}
