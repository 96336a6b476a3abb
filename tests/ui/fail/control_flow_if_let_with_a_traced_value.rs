use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let limit = Some(1.0);
    if let Some(limit) = limit && x > limit {
        return x * 2.0;
    }
    Ok(x)
}

fn main() {}
