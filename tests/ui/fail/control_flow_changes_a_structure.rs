use fx_core::prelude::*;

#[derive(Clone)]
struct State {
    h: Float,
    turns: usize,
}

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut state = State { h: x, turns: 0 };
    while state.h > 1.0 {
        state.h = (state.h * 0.5)?;
        state.turns += 1;
    }
    state.h * state.turns as f64
}

fn main() {}
