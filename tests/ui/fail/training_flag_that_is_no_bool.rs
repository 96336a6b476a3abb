use fx_core::prelude::*;

#[derive(Module)]
pub struct Layer {
    #[module(training)]
    pub mode: u8,
}

fn main() {}
