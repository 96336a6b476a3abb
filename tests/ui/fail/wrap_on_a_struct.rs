use fx_core::prelude::*;

#[wrap]
pub struct Own;

fn main() {}
