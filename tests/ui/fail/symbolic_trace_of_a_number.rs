#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub fn root() -> Result<GraphModule> {
    symbolic_trace(3)
}

fn main() {}
