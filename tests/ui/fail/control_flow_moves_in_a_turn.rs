use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let owned = vec![1.0];
    let mut h = x;
    while h > 1.0 {
        let all: Vec<f64> = owned;
        h = ((h * 0.5)? - all[0])?;
    }
    Ok(h)
}

fn main() {}
