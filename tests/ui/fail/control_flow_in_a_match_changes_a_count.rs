use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let mut count = 0usize;
    match n {
        0 => count += 1,
        _ => count += 2,
    }
    x * count as f64
}

fn main() {}
