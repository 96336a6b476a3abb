use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let numbers = vec![1.0, 2.0];
    let mut rest = numbers.iter();
    if x > 0.0 {
        rest.next();
    }
    x * rest.count() as f64
}

fn main() {}
