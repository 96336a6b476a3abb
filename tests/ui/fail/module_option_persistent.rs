#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[derive(Module)]
pub struct Layer {
    #[module(persistent = false)]
    pub mean: Tensor,
    #[module(buffer, persistent = 3)]
    pub var: Tensor,
    #[module(buffer, persistent)]
    pub count: Tensor,
    #[module(buffer, persistent = false)]
    pub table: Tensor,
}

fn main() {}
