#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer(Tag);

#[trace]
impl Layer {
    pub fn forward(&mut self, x: &Tensor) -> Result<Tensor> {
        x + x
    }
}

pub fn graphs(layer: &mut Layer, x: &Tensor) -> Result<(Tensor, GraphModule)> {
    Ok((layer.forward(x)?, symbolic_trace(&*layer)?))
}

fn main() {}
