#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub fn root() -> fx_core::trace::TracedFn {
    traced!(|x: &Tensor| x.clone())
}

fn main() {}
