use fx_core::prelude::*;

#[derive(Tree)]
pub struct Pair {
    pub one: Float,
}

#[wrap]
pub fn keep(pair: Pair) -> Result<Pair> {
    Ok(pair)
}

#[trace]
pub fn f(pair: Pair) -> Result<Pair> {
    keep(pair)
}

pub fn graph() -> Result<GraphModule> {
    symbolic_trace(traced!(f))
}

fn main() {}
