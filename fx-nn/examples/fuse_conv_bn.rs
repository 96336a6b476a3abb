//! ResNet-50 in evaluation mode, its batch norms folded into its convolutions: the same numbers from fewer nodes, in less
//! time.
//!
//! `cargo run --release -p fx-nn --example fuse_conv_bn`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::{Duration, Instant};

use fx_nn::models::resnet::resnet50;
use fx_nn::nn::init;
use fx_nn::passes::{FuseBatchNorm, counts};
use fx_nn::prelude::*;
use fx_nn::value::Dim;

/// Gives a batch norm statistics other than those that it starts with.
fn used_statistics(norm: &mut nn::BatchNorm2d) -> Result<()> {
    for mean in [&mut norm.running_mean, &mut norm.bias]
        .into_iter()
        .flatten()
    {
        init::normal(mean, 0.0, 0.1)?;
    }
    for variance in [&mut norm.running_var, &mut norm.weight]
        .into_iter()
        .flatten()
    {
        init::uniform(variance, 0.5, 1.0)?;
    }
    Ok(())
}

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
    // Statistics as training leaves them: those of the start would hide a wrong fold.
    let mut filled = Ok(());
    model.modules_mut::<nn::BatchNorm2d>(|_, norm| {
        if filled.is_ok() {
            filled = used_statistics(norm);
        }
    });
    filled?;
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

    // Bytes of the nodes' results: a result that is not computed is not written either.
    let bytes = |gm: &GraphModule| -> Result<Dim> {
        let counts = counts(gm, &x)?;
        let mut sizes = counts.nodes.iter().map(|node| &node.size.output_size);
        sizes.try_fold(Dim::default(), |sum, size| sum + size)
    };
    println!(
        "bytes given by nodes: {} -> {}",
        bytes(&before)?,
        bytes(&after)?
    );

    // Interleaved, so that both run under the same conditions.
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
