#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub fn f(x: &Tensor) -> Result<Tensor> {
    x + x
}

pub fn root() -> fx_core::trace::TracedFn {
    traced!(f)
}

fn main() {}
