use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    match x {
        0 => x * 2.0,
        _ => x * 3.0,
    }
}

fn main() {}
