use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let h = x;
    if x > 0.0 {
        h = (h * 2.0)?;
    }
    h + 1.0
}

fn main() {}
