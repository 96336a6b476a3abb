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

pub fn leaf() -> fx_core::ir::Function {
    function!(f)
}

#[trace]
pub fn twice(x: &Tensor) -> Result<Tensor> {
    f(&f(x, 1)?, 2)
}

fn main() {}
