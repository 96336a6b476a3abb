use fx_core::prelude::*;
use fx_core::ir::{Argument, Written};

fn written(_: &[Argument]) -> Option<Written> {
    None
}

#[wrap(written = written)]
fn double(x: Float) -> Result<Float> {
    x * 2.0
}

fn main() {}
