use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let y;
    if x > 0.0 {
        y = (x * 2.0)?;
    } else {
        y = (x * 3.0)?;
    }
    Ok(y)
}

fn main() {}
