use fx_core::prelude::*;

#[derive(Tree, Clone, Copy)]
pub union Pair {
    pub a: f64,
    pub b: i64,
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
