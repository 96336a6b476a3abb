use fx_core::prelude::*;

#[derive(Tree, Clone)]
pub enum Pair {
    One(Float),
    Two(Float, Float),
}

#[wrap]
pub fn keep(pair: Pair) -> Result<Pair> {
    Ok(pair)
}

#[trace]
pub fn f(pair: &Pair) -> Result<Pair> {
    keep(pair.clone())
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

fn main() {}
