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

fn main() {}
