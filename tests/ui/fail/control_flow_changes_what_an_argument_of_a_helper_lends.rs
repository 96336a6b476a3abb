use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut counts = vec![0usize];
    let count = &mut counts[0];
    if x > 0.0 {
        *count += 1;
    }
    x * counts[0] as f64
}

fn main() {}
