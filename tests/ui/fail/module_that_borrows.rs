#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Net<'a> {
    pub weight: &'a Tensor,
}

#[trace]
impl<'a> Net<'a> {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + self.weight
    }
}

fn main() {}
