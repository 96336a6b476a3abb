use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let (a, b) = ((x + 1.0)?, (x + 2.0)?);
    let chosen = if x > 0.0 { &a } else { &b };
    *chosen * 2.0
}

fn main() {}
