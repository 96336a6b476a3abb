#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

pub struct Cache;

#[derive(Module)]
pub struct Layer {
    pub weight: Tensor,
    #[module(skip)]
    pub cache: Cache,
}

fn main() {}
