use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let name = if x > 0.0 { String::from("up") } else { String::new() };
    x * name.len() as f64
}

fn main() {}
