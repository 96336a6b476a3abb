use fx_core::prelude::*;

#[trace(control_flow, control_flow)]
fn f(x: Float) -> Result<Float> {
    Ok(x)
}

fn main() {}
