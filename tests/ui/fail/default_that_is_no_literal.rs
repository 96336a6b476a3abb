#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[wrap]
pub fn f(
    x: &Tensor,
    #[kw]
    #[default(i64::MAX)]
    dim: i64,
) -> Result<Tensor> {
    x + dim
}

fn main() {}
