#[path = "../support/mod.rs"]
mod support;
use fx_core::prelude::*;

fn bump(n: &mut i32) -> i32 {
    *n += 1;
    *n
}

#[derive(Module)]
pub struct Body(Tag);

#[trace]
impl Body {
    pub fn forward(&self) -> Result<()> {
        Ok(())
    }

    pub fn bumped(&self, mut n: i32) -> bool {
        n > bump(&mut n)
    }
}

fn main() {}
