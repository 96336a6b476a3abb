use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let half = |x: Float| -> Result<Float> {
        if x > 1.0 {
            return x * 0.5;
        }
        Ok(x)
    };
    half(x)
}

fn main() {}
