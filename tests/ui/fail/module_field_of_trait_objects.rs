#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub trait Layer {
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}

#[derive(Module)]
pub struct Net {
    pub layers: Vec<Box<dyn Layer>>,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for layer in &self.layers {
            h = layer.forward(&h)?;
        }
        Ok(h)
    }
}

pub fn graph(net: &Net) -> Result<GraphModule> {
    symbolic_trace(net)
}

fn main() {}
