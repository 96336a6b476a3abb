#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer(Tag);

#[trace]
impl Layer {
    pub fn forward<T: Clone>(&self, x: &Tensor) -> Result<Tensor> {
        x + x
    }
}

fn main() {}
