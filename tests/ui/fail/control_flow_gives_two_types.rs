use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let y = if x > 0.0 { x * 2.0 } else { n + 1 };
    y? + 1.0
}

fn main() {}
