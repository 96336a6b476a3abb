use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let scale: Box<dyn Fn(Float) -> Result<Float>> = if x > 0.0 {
        Box::new(|x: Float| x * 2.0)
    } else {
        Box::new(|x: Float| x * 3.0)
    };
    scale(x)
}

fn main() {}
