//! Passes that know tensors: fusion of batch norms, removal of what does nothing, counts; and modules replaced by others.

#[path = "passes/fusion.rs"]
mod fusion;
#[path = "passes/inference.rs"]
mod inference;
#[path = "passes/surgery.rs"]
mod surgery;

use fx_nn::prelude::*;
use fx_nn::{Component, ComponentExt};

/// A module with weights and statistics that are not those of the start, in evaluation mode.
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
