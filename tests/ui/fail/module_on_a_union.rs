use fx_core::prelude::*;

#[derive(Module)]
pub union Either {
    pub a: u32,
    pub b: f32,
}

#[derive(Module)]
pub struct Net {
    pub either: Either,
}

#[trace]
impl Net {
    pub fn forward(&self, x: Float) -> Result<Float> {
        Ok(x)
    }
}

pub fn graph(net: &Net) -> Result<GraphModule> {
    symbolic_trace(net)
}

fn main() {}
