use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut count = 0usize;
    let mut add = || count += 1;
    if x > 0.0 {
        add();
    }
    x * count as f64
}

fn main() {}
