//! Passes on tensors: common sub-expressions, constant folding, effects, the pass manager, normal
//! forms, fusion of batch norms, removal of identities, counts; and modules replaced by others.

#[path = "passes/cse.rs"]
mod cse;
#[path = "passes/effects.rs"]
mod effects;
#[path = "passes/fold.rs"]
mod fold;
#[path = "passes/fusion.rs"]
mod fusion;
#[path = "passes/gram_norms.rs"]
mod gram_norms;
#[path = "passes/inference.rs"]
mod inference;
#[path = "passes/manager.rs"]
mod manager;
#[path = "passes/merge.rs"]
mod merge;
#[path = "passes/normalize.rs"]
mod normalize;
#[path = "passes/surgery.rs"]
mod surgery;

use fx_nn::allclose;
use fx_nn::module::{Component, ComponentExt};
use fx_nn::passes::Pass;
use fx_nn::prelude::*;

/// A module with weights and statistics that differ from the initial ones, in evaluation mode.
fn filled<M: Module + Component>(mut module: M) -> Result<M> {
    fx_goldens::model::fill(&mut module, 1.5)?;
    module.eval();
    Ok(module)
}

/// The largest difference over the largest number.
#[track_caller]
fn is_close(found: &Tensor, expected: &Tensor, bar: f64) -> Result<()> {
    assert_eq!(found.dims()?, expected.dims()?);
    let largest = expected
        .to_vec()?
        .iter()
        .fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let pairs = found.to_vec()?.into_iter().zip(expected.to_vec()?);
    let worst = pairs.fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    assert!(worst / largest <= bar, "{} > {bar}", worst / largest);
    Ok(())
}

#[track_caller]
fn says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in `{error}`");
    }
}

/// The number of nodes whose target's last part is `target`.
fn count(gm: &GraphModule, target: &str) -> usize {
    let nodes = gm.graph().nodes();
    nodes
        .filter(|node| node.target().rsplit("::").next() == Some(target))
        .count()
}

/// Runs a pass, and checks that the module's results stay equal, bit for bit.
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
