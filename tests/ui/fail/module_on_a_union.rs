use fx_core::prelude::*;

#[derive(Module)]
pub union Either {
    pub a: u32,
    pub b: f32,
}

fn main() {}
