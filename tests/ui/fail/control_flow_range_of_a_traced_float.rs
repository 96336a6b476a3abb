use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    for _ in 0..x {
        h = (h * 2.0)?;
    }
    Ok(h)
}

fn main() {}
