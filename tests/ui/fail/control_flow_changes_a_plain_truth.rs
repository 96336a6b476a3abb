use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut seen = false;
    let mut h = x;
    while h > 1.0 {
        h = (h * 0.5)?;
        seen = true;
    }
    if seen { h * 2.0 } else { h + 1.0 }
}

fn main() {}
