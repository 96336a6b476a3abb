#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

use fx_core::ir::{Effects, Function};

#[wrap]
fn plain(x: &Tensor) -> Result<Tensor> {
    x * 2
}

#[wrap(impure, path = "leaves::shout")]
fn shout(mut x: Tensor) -> Result<Tensor> {
    x = (x * 2)?;
    Ok(x)
}

#[wrap(always, random)]
fn draw(n: usize) -> Result<Tensor> {
    Ok(tensor(format!("draw{n}")))
}

#[wrap(commutative)]
fn meet(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a * b
}

#[wrap]
#[inline(always)]
fn inlined(x: &Tensor, #[kw] #[default(1)] n: i64, #[kw] label: Option<&str>) -> Result<(Tensor, Tensor)> {
    let _ = label;
    Ok((x.clone(), (x * n)?))
}

wrap_fn! {
    /// The sine.
    fn sin(x: Float) -> Result<Float> = f64::sin;
    #[wrap(impure)]
    pub fn pick(#[kw] n: Int, limit: Int) -> Result<Int> = |n: i64, limit: i64| n.min(limit);
}

fn main() -> Result<()> {
    let functions: [Function; 4] = [function!(plain), function!(shout), function!(draw), function!(meet)];
    assert_eq!(functions[1].def().effects, Effects::ALL);
    assert!(functions[2].def().always && functions[3].def().commutative);
    let gm = symbolic_trace(traced!(|x: &Tensor, s: Float| {
        let (a, b) = inlined(&shout(plain(x)?)?, 3, Some("l"))?;
        let _ = pick(1.into(), 2.into())?;
        meet(&(a * sin(s)?)?, &(b + draw(2)?)?)
    }))?;
    assert_eq!(gm.graph().nodes().count(), 13);
    Ok(())
}
