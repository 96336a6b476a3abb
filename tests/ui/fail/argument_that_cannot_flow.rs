#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub struct Config;

#[trace]
pub fn f(x: &Tensor, config: &Config) -> Result<Tensor> {
    x + x
}

fn main() {}
