#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::{Tensor, tensor};

#[trace]
fn f(x: &Tensor) -> Result<Tensor> {
    (x > 0.5)? * x.relu()?
}

fn main() {
    let y = f(&tensor("x")).expect("runs");
    assert_eq!(y.text, "mul(gt(x, 0.5), relu(x))");
    let traced = symbolic_trace(traced!(f)).expect("traces");
    assert_eq!(traced.graph().nodes().count(), 5);
}
