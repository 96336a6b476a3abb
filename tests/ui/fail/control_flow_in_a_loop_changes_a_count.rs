use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut x = x;
    let mut turns = 0;
    while x > 1.0 {
        x = (x / 2.0)?;
        turns += 1;
    }
    x * turns as f64
}

fn main() {}
