#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor) {
    let _ = x + x;
}

#[trace]
pub fn g(x: &Tensor) {
    x + x
}

#[wrap]
pub fn h(x: &Tensor) {
    Ok(x.clone())
}

#[trace]
pub fn all(x: &Tensor) -> Result<Tensor> {
    f(x);
    g(x)?;
    h(x)?;
    x + x
}

pub fn graphs() -> Result<[GraphModule; 2]> {
    Ok([symbolic_trace(traced!(f))?, symbolic_trace(traced!(g))?])
}

fn main() {}
