#[path = "../support/mod.rs"]
mod support;

use ::fx_core::{Module, function, symbolic_trace, trace, traced, wrap};
use ::fx_core::module::Module;
use support::{Tensor, tensor};

pub struct Vec;
pub struct Option;
pub struct Value;
pub struct Box;
pub struct Param;
pub struct Error;
pub struct Clone;
pub struct Into;
pub struct String;
pub struct Result;
#[allow(non_upper_case_globals)]
pub const None: u8 = 0;
#[allow(non_snake_case)]
pub fn Ok() {}
#[allow(non_snake_case)]
pub fn Err() {}
#[allow(non_snake_case)]
pub fn Some() {}

mod core {}
mod std {}
mod fx_core {}

macro_rules! vec {
    () => {};
}
vec![];

#[trace]
pub fn body(x: &Tensor, n: usize) -> ::fx_core::Result<Tensor> {
    if n > 3 && n != 5 { x > 0.5 } else { x + n }
}

#[wrap(method)]
pub fn double(
    x: &Tensor,
    #[kw]
    #[default(2.0)]
    by: impl ::core::convert::Into<f64>,
) -> ::fx_core::Result<Tensor> {
    ::core::result::Result::Ok(tensor(format!("double({}, {by})", x.text)))
}

#[derive(Module)]
pub struct Layer {
    weight: Tensor,
    #[module(skip)]
    name: &'static str,
}

#[trace]
impl Layer {
    pub fn forward(&self, x: &Tensor) -> ::fx_core::Result<Tensor> {
        assert!(self.name == "a", "a name");
        x * &self.weight
    }
}

fn main() {
    let layer = Layer {
        weight: tensor("w"),
        name: "a",
    };
    let traced = [
        symbolic_trace(&layer),
        symbolic_trace(traced!(|x: &Tensor| x.double(3.0))),
    ];
    assert!(traced.iter().all(::core::result::Result::is_ok));
    assert!(body(&tensor("x"), 4).is_ok());
    let _ = (traced!(body), function!(double), Param, Value);
}
