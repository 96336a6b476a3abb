use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let scale = if x > 0.0 { 2.0 } else { 3.0 };
    x * scale
}

fn main() {}
