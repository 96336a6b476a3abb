#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;

pub fn leaf() -> fx_core::ir::Function {
    function!(|| support::sum)
}

fn main() {}
