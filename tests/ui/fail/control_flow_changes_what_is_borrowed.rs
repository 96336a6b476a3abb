use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    let before = &h;
    if x > 0.0 {
        h = (h * 2.0)?;
    }
    h + *before
}

fn main() {}
