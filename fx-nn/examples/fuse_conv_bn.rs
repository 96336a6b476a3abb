//! ResNet-50 in evaluation mode, its batch norms folded into its convolutions: the same numbers from fewer nodes, in less
//! time.
//!
//! `cargo run --release -p fx-nn --example fuse_conv_bn`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::{Duration, Instant};

use fx_nn::models::resnet::resnet50;
use fx_nn::passes::{FuseBatchNorm, counts};
use fx_nn::prelude::*;

/// The time of one run.
fn timed(gm: &GraphModule, x: &Tensor) -> Result<Duration> {
    let start = Instant::now();
    gm.forward::<Tensor>(x)?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let mut model = resnet50(1000)?;
    // Weights and statistics that are not those of the start.
    fx_goldens::model::fill(&mut model, 1.5)?;
    nn::set_requires_grad(&mut model, false)?;

    // In training mode a batch norm depends on the batch: there is nothing to fold.
    let refused = symbolic_trace(&model)?.apply(&FuseBatchNorm);
    println!(
        "in training mode: {}",
        refused.err().map(|e| e.to_string()).unwrap_or_default()
    );

    model.eval();
    let before = symbolic_trace(&model)?;
    let mut after = before.clone();
    let plan = FuseBatchNorm::plan(&after)?;
    println!(
        "to fold: {}, to stay: {}",
        plan.fused.len(),
        plan.skipped.len()
    );
    let record = after.apply(&FuseBatchNorm)?;
    println!("{record}");
    println!("nodes: {} -> {}", record.nodes_before, record.nodes_after);

    let x = Tensor::rand((1, 3, 224, 224))?;
    let (expected, found): (Tensor, Tensor) = (before.forward(&x)?, after.forward(&x)?);
    let largest = expected.abs()?.amax(..)?.item()?;
    let difference = (found - &expected)?.abs()?.amax(..)?.item()?;
    println!("max_rel_difference: {:.2e}", difference / largest);

    // Bytes that the nodes give: what is not computed is not written either.
    let bytes = |gm: &GraphModule| -> Result<usize> {
        let counts = counts(gm, &x)?;
        Ok(counts.nodes.iter().map(|node| node.size.output_size).sum())
    };
    println!(
        "bytes given by nodes: {} -> {}",
        bytes(&before)?,
        bytes(&after)?
    );

    // In turns, so that both have the machine as it is.
    let (mut slow, mut fast) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        slow.push(timed(&before, &x)?);
        fast.push(timed(&after, &x)?);
    }
    let (slow, fast) = (median(slow), median(fast));
    println!(
        "median time of a run: {:.1} ms -> {:.1} ms ({:.2} times as fast)",
        slow.as_secs_f64() * 1e3,
        fast.as_secs_f64() * 1e3,
        slow.as_secs_f64() / fast.as_secs_f64()
    );
    Ok(())
}
