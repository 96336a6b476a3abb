#[path = "../support/mod.rs"]
mod support;

use fx_core::prelude::*;
use support::{Tensor, tensor};

use fx_core::value::IntoValue;
use indexmap::IndexMap;

#[derive(Tree, Clone)]
struct Batch<T> {
    ids: T,
    masks: Vec<T>,
    extra: IndexMap<String, T>,
}

#[derive(Tree, Clone)]
struct Pair(Tensor, Int);

#[trace]
fn f(batch: Batch<Tensor>, #[default(2.0)] by: Float, #[kw] #[default(true)] open: bool) -> Result<Pair> {
    let x = (batch.ids + &batch.masks[0])?;
    let x = if open { (x * by)? } else { x };
    Ok(Pair(x, batch.masks.len().into()))
}

fn main() -> Result<()> {
    let gm = Trace::new(traced!(f))
        .concrete("batch", tree!({"ids": PH, "masks": [PH, PH], "extra": {"a": PH}}))
        .concrete("open", true)
        .graph_module()?;
    let batch = Batch {
        ids: tensor("i"),
        masks: vec![tensor("m"), tensor("n")],
        extra: [("a".to_string(), tensor("e"))].into_iter().collect(),
    };
    let Pair(x, n) = gm.forward((&batch, 2.0))?;
    assert_eq!((x.text.as_str(), n.concrete()), ("mul(add(i, m), 2.0)", Some(2)));
    assert!(matches!(batch.into_value(), Value::Dict(_)));
    Ok(())
}
