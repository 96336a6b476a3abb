#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;

pub fn root() -> fx_core::trace::TracedFn {
    traced!(support::relu)
}

fn main() {}
