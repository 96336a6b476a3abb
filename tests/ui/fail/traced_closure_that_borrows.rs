#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub fn root(bias: &Tensor) -> fx_core::trace::TracedFn {
    traced!(|x: &Tensor| x + bias)
}

fn main() {}
