#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

#[trace]
fn f(x: &Tensor) -> Result<Tensor> {
    const LIMIT: i64 = if 3 > 2 { 1 } else { 2 };
    struct Pair {
        a: i64,
        b: i64,
    }
    impl Pair {
        fn ordered(&self) -> bool {
            self.a < self.b
        }
    }
    fn nested(n: i64) -> i64 {
        if n > LIMIT { n } else { LIMIT }
    }
    #[trace]
    fn traced_inside(x: &Tensor) -> Result<Tensor> {
        (x > 1.0)? * x
    }
    let pair = Pair { a: nested(0), b: nested(5) };
    let double = |t: &Tensor| t * 2;
    let x = if pair.ordered() { double(x)? } else { x.clone() };
    traced_inside(&x)
}

fn main() -> Result<()> {
    let gm = symbolic_trace(traced!(f))?;
    assert_eq!(gm.forward::<Tensor>(&tensor("x"))?.text, f(&tensor("x"))?.text);
    Ok(())
}
