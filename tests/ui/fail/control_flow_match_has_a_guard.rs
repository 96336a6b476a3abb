use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    match n {
        0 if x > 1.0 => x * 2.0,
        _ => x * 3.0,
    }
}

fn main() {}
