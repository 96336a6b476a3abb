#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Gate(Tag);

#[trace]
impl Gate {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * x
    }

    pub fn above<T>(&self, a: T, b: T) -> bool {
        a >= b
    }
}

fn main() {}
