#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;
use support::Tensor;

#[trace(control_flow)]
pub fn f(mask: Option<Tensor>, x: &Tensor, n: Int) -> Result<Tensor> {
    if n > 1 {
        match mask {
            Some(mask) => mask + x,
            None => Ok(x.clone()),
        }
    } else {
        match mask {
            Some(mask) => mask * x,
            None => Ok(x.clone()),
        }
    }
}

fn main() {}
