use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    if x > 0.0 && x < 1.0 {
        return x * 2.0;
    }
    Ok(x)
}

fn main() {}
