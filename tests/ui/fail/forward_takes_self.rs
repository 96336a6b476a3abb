#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer(Tag);

#[trace]
impl Layer {
    pub fn forward(self, x: &Tensor) -> Result<Tensor> {
        x + x
    }
}

pub fn graphs(layer: Layer, x: &Tensor) -> Result<(Tensor, GraphModule)> {
    let graph = symbolic_trace(&layer)?;
    Ok((layer.forward(x)?, graph))
}

fn main() {}
