#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method)]
impl Tensor {
    pub fn double(&self) -> Result<Tensor> {
        Ok(self.clone())
    }
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    x.double()?.double()
}

fn main() {}
