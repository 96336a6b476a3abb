use fx_core::prelude::*;

#[trace(control_flow = true)]
fn f(x: Float) -> Result<Float> {
    Ok(x)
}

fn main() {}
