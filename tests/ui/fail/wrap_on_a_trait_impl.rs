#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
impl Iterator for Tensor {
    type Item = Tensor;
    fn next(&mut self) -> Option<Tensor> {
        None
    }
}

fn main() {}
