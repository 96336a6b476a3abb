#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

use std::fmt::Write;

macro_rules! twice {
    ($x:expr) => {
        $x * 2
    };
}

#[trace]
fn f(x: &Tensor, n: i64, name: &str) -> Result<Tensor> {
    assert!(n > 0 && n < 100, "n is {n}");
    assert_ne!(n, 50);
    let label = format!("{name}-{}", n > 3);
    let mut text = String::new();
    write!(text, "{label:?}").map_err(Error::other)?;
    let sizes = vec![n, n + 1];
    if matches!(sizes.as_slice(), [a, b] if a < b) && !text.is_empty() {
        return twice!(x);
    }
    println!("{sizes:?}");
    (x > 0.5)? + x
}

fn main() -> Result<()> {
    assert_eq!(f(&tensor("x"), 4, "a")?.text, "mul(x, 2)");
    let gm = Trace::new(traced!(f)).concrete("n", 4).concrete("name", "a").graph_module()?;
    assert_eq!(gm.forward::<Tensor>((&tensor("x"), 4, "a"))?.text, "mul(x, 2)");
    Ok(())
}
