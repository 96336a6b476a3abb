use fx_core::prelude::*;

#[trace(control_flow)]
fn f(x: Float) -> Result<Float> {
    let mut turns = 0;
    let last = loop {
        turns += 1;
        if x > turns as f64 {
            continue;
        }
        break turns;
    };
    x + last as f64
}

fn main() {}
