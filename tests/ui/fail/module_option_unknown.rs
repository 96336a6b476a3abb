#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer {
    #[module(bufer)]
    pub mean: Tensor,
}

#[trace]
impl Layer {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + x
    }
}

#[derive(Module)]
pub struct Net {
    pub layer: Layer,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layer.forward(x)
    }
}

pub fn graphs(layer: &Layer, net: &Net) -> Result<[GraphModule; 2]> {
    Ok([symbolic_trace(layer)?, symbolic_trace(net)?])
}

fn main() {}
