use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let later = async move {
        if x > 0.0 {
            return x * 2.0;
        }
        Ok(x)
    };
    drop(later);
    Ok(x)
}

fn main() {}
