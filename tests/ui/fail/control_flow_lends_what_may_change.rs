use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let (mut a, mut b) = ((x + 1.0)?, (x + 2.0)?);
    let chosen = if x > 0.0 { &mut a } else { &mut b };
    *chosen = (*chosen * 2.0)?;
    a + b
}

fn main() {}
