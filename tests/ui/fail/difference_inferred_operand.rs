#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;

#[derive(Module)]
pub struct Body(Tag);

#[trace]
impl Body {
    pub fn forward(&self) -> Result<()> {
        Ok(())
    }

    pub fn above(&self, total: f64, values: &[f64]) -> bool {
        total > values.iter().sum()
    }
}

fn main() {}
