#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace]
pub fn f(x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    if let Some(bias) = bias
        && bias > x
    {
        return x + bias;
    }
    x * x
}

fn main() {}
