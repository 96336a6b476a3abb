use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let scale = match n {
        0 => 1.0,
        1..=3 => 2.0,
        _ => 4.0,
    };
    x * scale
}

fn main() {}
