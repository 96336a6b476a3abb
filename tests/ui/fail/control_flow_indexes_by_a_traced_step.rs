use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let scales = [1.0, 2.0, 3.0];
    let mut h = x;
    for i in 0..n {
        h = (h * scales[i])?;
    }
    Ok(h)
}

fn main() {}
