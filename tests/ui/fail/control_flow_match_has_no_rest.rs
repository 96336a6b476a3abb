use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    match n {
        0 => x * 2.0,
        1 => x * 3.0,
    }
}

fn main() {}
