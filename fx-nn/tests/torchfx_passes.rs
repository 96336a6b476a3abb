//! Passes on tensors: common sub-expressions, constant folding, effects, the pass manager, normal forms.

#[path = "torchfx_passes/cse.rs"]
mod cse;
#[path = "torchfx_passes/effects.rs"]
mod effects;
#[path = "torchfx_passes/fold.rs"]
mod fold;
#[path = "torchfx_passes/manager.rs"]
mod manager;
#[path = "torchfx_passes/normalize.rs"]
mod normalize;

use fx_nn::prelude::*;
use fx_nn::{Pass, allclose};

/// How many nodes have a target that ends so.
fn count(gm: &GraphModule, target: &str) -> usize {
    let nodes = gm.graph().nodes();
    nodes
        .filter(|node| node.target().rsplit("::").next() == Some(target))
        .count()
}

/// Runs a pass; the module gives what it gave before, bit for bit.
fn keeps_numbers(gm: &mut GraphModule, pass: &impl Pass, x: &Tensor) -> Result<bool> {
    let before: Vec<Tensor> = tensors(gm.forward(x)?);
    let changed = gm.apply(pass)?.changed;
    let after: Vec<Tensor> = tensors(gm.forward(x)?);
    assert_eq!(before.len(), after.len());
    for (a, b) in after.iter().zip(&before) {
        let closeness = allclose(a, b, 0.0, 0.0)?;
        assert!(closeness.close, "{closeness}\n{}", gm.graph());
    }
    Ok(changed)
}

fn tensors(value: Value) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.for_each(&mut |leaf| found.extend(leaf.downcast_ref::<Tensor>().cloned()));
    found
}
