#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer(Tag);

#[trace]
impl Layer {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + x
    }
}

pub fn root() -> Result<GraphModule> {
    symbolic_trace(Layer(Tag::default()))
}

fn main() {}
