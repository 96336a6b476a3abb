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

    pub fn same(&self, a: *const i32, b: *mut i32) -> bool {
        a == b
    }
}

fn main() {}
