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

    pub fn small(&self, n: u8) -> bool {
        let small = |x| !(x > 3);
        small(n)
    }
}

fn main() {}
