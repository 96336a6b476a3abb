use fx_core::prelude::*;

#[derive(Module)]
struct Inner {
    by: f64,
}

#[derive(Module)]
struct Outer {
    #[module(name = "blocks.0")]
    first: Inner,
}

fn main() {}
