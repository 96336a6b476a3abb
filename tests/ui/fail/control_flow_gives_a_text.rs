use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let name = if x > 0.0 { "up" } else { "down" };
    x * name.len() as f64
}

fn main() {}
