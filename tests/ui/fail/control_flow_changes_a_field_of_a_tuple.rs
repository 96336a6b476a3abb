use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut state = (x, 0usize);
    if x > 0.0 {
        state.1 += 1;
    }
    state.0 * state.1 as f64
}

fn main() {}
