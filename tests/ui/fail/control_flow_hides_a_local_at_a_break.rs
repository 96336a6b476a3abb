use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut h = x;
    while h < 10.0 {
        h = (h + 1.0)?;
        let h = (h * 2.0)?;
        if h > 7.0 {
            break;
        }
    }
    h + 1.0
}

fn main() {}
