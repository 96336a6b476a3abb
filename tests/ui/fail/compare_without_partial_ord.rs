#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Train,
    Eval,
}

#[trace]
pub fn f(x: &Tensor) -> Result<Tensor> {
    let (a, b) = (Mode::Train, Mode::Eval);
    if a < b { Ok(x.clone()) } else { x * x }
}

fn main() {}
