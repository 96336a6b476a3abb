use fx_core::prelude::*;

pub fn root() -> Result<GraphModule> {
    symbolic_trace(3)
}

fn main() {}
