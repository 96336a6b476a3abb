#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

#[trace]
fn args(x: &Tensor) -> Result<Tensor> {
    x + x
}

#[trace]
fn out(
    out: &Tensor,
    args: &Tensor,
    error: &Tensor,
    guard: i64,
    __value: &Tensor,
) -> Result<Tensor> {
    let value = ((out + args)? + error)?;
    (value + guard)? + __value
}

#[wrap(method)]
pub fn callee(args: &Tensor, out: &Tensor, form: i64) -> Result<Tensor> {
    (args + out)? + form
}

#[derive(Module)]
struct Layer {
    walk: Tensor,
    this: Tensor,
    args: Tensor,
}

#[trace]
impl Layer {
    fn forward(&self, args: &Tensor, out: &Tensor, module: &Tensor) -> Result<Tensor> {
        let h = ((args + out)? + module)?;
        ((h + &self.walk)? + &self.this)? + &self.args
    }
}

fn main() {
    let x = tensor("x");
    let bias = tensor("b");
    let (args, out) = (bias.clone(), bias);
    let closure = traced!(|x: &Tensor| ((x + &args)? + &out)?.callee(x, 3));
    assert!(symbolic_trace(closure).is_ok());
    assert!(self::args(&x).is_ok());
    assert!(
        Trace::new(traced!(self::out))
            .concrete("guard", 1i64)
            .graph()
            .is_ok()
    );
    let layer = Layer {
        walk: tensor("a"),
        this: tensor("b"),
        args: tensor("c"),
    };
    assert!(symbolic_trace(&layer).is_ok() && layer.forward(&x, &x, &x).is_ok());
}
