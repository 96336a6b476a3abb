#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer(Tag);

#[trace]
impl Layer {
    pub fn forward(&self, x: &Tensor, scale: f32) -> Result<Tensor> {
        x * scale
    }
}

fn main() {}
