use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    let mut count = 0usize;
    loop {
        count += 1;
        h = (h * 0.5)?;
        if h < 1.0 {
            break;
        }
    }
    h * count as f64
}

fn main() {}
