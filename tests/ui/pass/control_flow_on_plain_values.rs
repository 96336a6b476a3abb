#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

enum Kind {
    Add(i64),
    Skip,
}

#[trace]
fn f(x: &Tensor, n: usize, flag: Option<bool>) -> Result<Tensor> {
    let mut h = x.clone();
    let mut left = n;
    'outer: loop {
        while left > 0 {
            left -= 1;
            if left == 1 {
                continue 'outer;
            }
            h = (h + left)?;
        }
        break;
    }
    for (i, kind) in [Kind::Add(1), Kind::Skip, Kind::Add(2)].iter().enumerate() {
        h = match kind {
            Kind::Add(k) if *k > 1 && i > 0 => (h * *k)?,
            Kind::Add(_) => h,
            Kind::Skip => continue,
        };
    }
    let Some(flag) = flag else {
        return Ok(h);
    };
    if let Some(extra) = flag.then_some(3) && extra > 2 {
        h = (h - extra)?;
    }
    Ok(h)
}

fn main() -> Result<()> {
    let eager = f(&tensor("x"), 4, Some(true))?.text;
    let gm = Trace::new(traced!(f)).concrete("n", 4).concrete("flag", true).graph_module()?;
    assert_eq!(gm.forward::<Tensor>((&tensor("x"), 4, true))?.text, eager);
    Ok(())
}
