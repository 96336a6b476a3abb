#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;

pub fn root() -> fx_core::trace::TracedFn {
    traced!(|(x, y): (support::Tensor, support::Tensor)| x + y)
}

fn main() {}
