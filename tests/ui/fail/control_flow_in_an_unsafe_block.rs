use fx_core::prelude::*;

#[allow(unused_unsafe)]
#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    unsafe {
        if x > 0.0 {
            return x * 2.0;
        }
    }
    Ok(x)
}

fn main() {}
