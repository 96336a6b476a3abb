#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub struct Config {
    scale: f64,
}

#[trace]
pub fn f(x: &Tensor, config: &Config) -> Result<Tensor> {
    x + config.scale
}

fn main() {}
