use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float, all: Vec<Float>) -> Result<Float> {
    if x > 0.0 {
        drop(all);
    }
    Ok(x)
}

fn main() {}
