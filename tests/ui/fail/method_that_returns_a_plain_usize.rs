#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
impl Tensor {
    pub fn rank(&self) -> Result<usize> {
        Ok(1)
    }
}

fn main() {}
