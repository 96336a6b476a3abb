#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub fn root() -> fx_core::trace::TracedFn {
    traced!(|x: &Tensor| if x > 0.0 { Ok(x.clone()) } else { x * x })
}

fn main() {}
