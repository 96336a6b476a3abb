use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    if x.concrete() {
        return x * 2.0;
    }
    Ok(x)
}

fn main() {}
