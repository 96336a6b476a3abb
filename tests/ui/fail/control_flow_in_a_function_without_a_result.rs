use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> f64 {
    let mut out = 0.0;
    if x > 1.0 {
        out = 2.0;
    }
    out
}

fn main() {}
