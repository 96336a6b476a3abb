#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Relu;

#[trace(leaf)]
impl Relu {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.relu()
    }
}

#[derive(Module)]
pub struct Net {
    pub relu: Relu,
    pub scale: Tensor,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.relu.forward(x)
    }
}

pub fn graphs(relu: &Relu, net: &Net) -> Result<[GraphModule; 2]> {
    Ok([symbolic_trace(relu)?, symbolic_trace(net)?])
}

fn main() {}
