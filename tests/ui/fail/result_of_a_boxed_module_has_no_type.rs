#[path = "../support/mod.rs"]
mod support;
use fx_core::module::Module;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Net {
    act: Box<dyn Module>,
}

#[trace]
impl Net {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.act.forward(x)? * x
    }
}

fn main() {}
