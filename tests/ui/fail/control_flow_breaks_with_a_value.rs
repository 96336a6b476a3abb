use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    let half = loop {
        h = (h * 0.5)?;
        if h < 1.0 {
            break h;
        }
    };
    half + 1.0
}

fn main() {}
