#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Clone, Copy)]
pub enum Padding {
    Zeros,
    Reflect,
}

#[derive(Module)]
pub struct Net {
    pub weight: Tensor,
    pub padding: Padding,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + &self.weight
    }
}

fn main() {}
