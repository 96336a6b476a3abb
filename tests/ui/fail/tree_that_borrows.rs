use fx_core::prelude::*;

#[derive(Tree, Clone)]
pub struct Pair<'a, T: Clone> {
    pub one: &'a T,
    pub two: T,
}

pub fn value(pair: Pair<'_, f64>) -> Value {
    fx_core::value::IntoValue::into_value(pair)
}

#[trace]
pub fn f(pair: &Pair<'_, Float>) -> Result<Float> {
    pair.two.clone() + 1.0
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

fn main() {}
