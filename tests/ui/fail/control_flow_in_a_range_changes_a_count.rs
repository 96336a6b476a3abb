use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let mut count = 0usize;
    for _ in 0..n {
        count += 1;
    }
    x * count as f64
}

fn main() {}
