#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub union Either {
    pub a: u32,
    pub b: f32,
}

fn main() {}
