use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let mut h = x;
    for i in n.. {
        h = (h * i)?;
    }
    Ok(h)
}

fn main() {}
