use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    for step in [1.0, 2.0] {
        h = (h + step)?;
        {
            let h = (h * 2.0)?;
            if h > 7.0 {
                continue;
            }
        }
        h = (h * 0.5)?;
    }
    h + 1.0
}

fn main() {}
