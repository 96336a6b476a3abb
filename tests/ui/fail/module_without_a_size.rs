#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Relu;

#[trace(leaf)]
impl Relu {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.relu()
    }
}

fn main() {}
