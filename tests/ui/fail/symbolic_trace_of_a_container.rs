#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layers(Vec<Tensor>);

pub fn root(layers: &Layers) -> Result<GraphModule> {
    symbolic_trace(layers)
}

fn main() {}
