#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

#[derive(Module)]
struct M {
    w: Tensor,
}

#[trace]
impl M {
    fn forward(&self, mut x: Tensor, mut n: i64) -> Result<Tensor> {
        while n > 0 {
            x = (x + &self.w)?;
            n -= 1;
        }
        Ok(x)
    }
}

#[trace]
fn f(mut x: Tensor) -> Result<Tensor> {
    x = (x + 1)?;
    Ok(x)
}

fn main() -> Result<()> {
    let m = M { w: tensor("w") };
    let gm = Trace::new(&m).concrete("n", 2).graph_module()?;
    assert_eq!(gm.forward::<Tensor>((tensor("x"), 2))?.text, m.forward(tensor("x"), 2)?.text);
    let g = traced!(|mut x: Tensor| {
        x = f(x)?;
        Ok(x)
    });
    assert_eq!(symbolic_trace(g)?.forward::<Tensor>(tensor("x"))?.text, "add(x, 1)");
    Ok(())
}
