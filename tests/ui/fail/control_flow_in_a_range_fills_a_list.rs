use fx_core::prelude::*;

struct Owned(f64);

#[trace(control_flow)]
fn f(x: Float, n: Int) -> Result<Float> {
    let mut outs: Vec<Owned> = Vec::new();
    for _ in 0..n {
        outs.push(Owned(1.0));
    }
    x * outs.len() as f64
}

fn main() {}
