//! An error in the body of an operation is at its own line.

use fx_core::__private::op;
use fx_core::prelude::*;

#[op(always)]
fn double(x: Float) -> Result<Float> {
    let twice: bool = x * 2.0;
    twice
}

#[op(unary, binary, cost, member = 3)]
fn of_two_kinds(x: Float) -> Result<Float> {
    x * 2.0
}

#[op(unary)]
struct NoFunction;

#[op(unary, colour = "red")]
fn unknown(x: Float) -> Result<Float> {
    x * 2.0
}

fn main() {}
