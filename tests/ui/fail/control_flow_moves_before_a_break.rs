use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let owned = vec![1.0];
    let mut h = x;
    loop {
        h = (h * 0.5)?;
        if h < 1.0 {
            drop(owned);
            break;
        }
    }
    Ok(h)
}

fn main() {}
