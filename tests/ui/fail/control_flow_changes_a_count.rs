use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut count = 0usize;
    if x > 0.0 {
        count += 1;
    }
    x * count as f64
}

fn main() {}
