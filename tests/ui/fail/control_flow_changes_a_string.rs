use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut words = String::new();
    if x > 0.0 {
        words += "up";
    }
    x * words.len() as f64
}

fn main() {}
