#[path = "../support/mod.rs"]
mod support;
use fx_core::ir::Function;
use fx_core::prelude::*;
use support::Tensor;

#[wrap(method)]
pub fn mix(x: &Tensor, (by, _): (f64, f64)) -> Result<Tensor> {
    x * by
}

#[wrap(method = custom)]
pub fn blend<'a>(x: &'a Tensor, #[kw] _: f64) -> Result<Tensor> {
    Ok(x.clone())
}

#[trace]
pub fn generic<T: Clone + 'static, const N: usize>(x: &Tensor, [_, _]: [T; 2]) -> Result<Tensor> {
    if N > 2 { x * 2.0 } else { x + 1.0 }
}

#[trace(leaff, leaf, path = "a::b", impure)]
pub fn leaf(x: &Tensor) -> Result<Tensor> {
    assert!(x > 0.5);
    x + x
}

#[derive(Module)]
pub enum Either {
    One(#[module(bufer)] Tensor),
    Two { #[module(skip = 1)] two: Tensor },
    Three,
}

#[trace]
impl Either {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        generic::<f64, 3>(&mix(x, (1.0, 2.0))?.mix((2.0, 3.0))?, [1.0, 2.0])
    }
}

pub fn functions() -> [Function; 4] {
    [function!(mix), function!(blend), function!(1), function!(|x| x)]
}

pub fn methods(x: &Tensor) -> Result<Tensor> {
    mix::method(&blend::method(x, 2.0)?, (1.0, 2.0))
}

pub fn graphs(either: &Either) -> Result<[GraphModule; 6]> {
    Ok([
        symbolic_trace(traced!(generic::<f64, 3>))?,
        symbolic_trace(traced!(leaf))?,
        symbolic_trace(traced!(|x, y| leaf(x)))?,
        symbolic_trace(traced!())?,
        symbolic_trace(traced!(leaf()))?,
        symbolic_trace(either)?,
    ])
}

fn main() {}
