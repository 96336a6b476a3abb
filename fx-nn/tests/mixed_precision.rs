//! Training steps with a loss that is scaled, and with models that compute in bf16.

use fx_nn::optim::{AdamW, SGD};
use fx_nn::prelude::*;
use fx_nn::trace::TracedFn;
use fx_nn::train::{LossScale, TrainStep};

fn net() -> Result<nn::Sequential> {
    fx_nn::manual_seed(3);
    Ok(nn::Sequential::new()
        .push(nn::Conv2d::new(1, 4, 3)?)
        .push(nn::BatchNorm2d::new(4)?)
        .push(nn::ReLU::new())
        .push(nn::Flatten::new())
        .push(nn::LayerNorm::new(4 * 16)?)
        .push(nn::Linear::new(4 * 16, 3)?))
}

fn batch() -> Result<(Tensor, Tensor)> {
    fx_nn::manual_seed(5);
    let y = Tensor::from_vec(vec![0i64, 2, 1, 1], 4)?;
    Ok((Tensor::randn((4, 1, 6, 6))?, y))
}

fn loss() -> TracedFn {
    traced!(|scores: &Tensor, y: &Tensor| ops::cross_entropy(scores, y, None, -100, "mean", 0.0))
}

fn step() -> Result<TrainStep> {
    let net = net()?;
    TrainStep::new(&net, loss(), AdamW::new(&net)?.lr(0.01).eps(1e-4))
}

/// All that a step has learnt.
fn numbers(step: &TrainStep) -> Result<Vec<f64>> {
    let state = step.state_dict()?;
    let each = state.values().map(Tensor::to_vec);
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn a_scale_of_the_loss_changes_no_bit() -> Result<()> {
    let (x, y) = batch()?;
    for is_compiled in [false, true] {
        for parts in [1, 2] {
            let mut plain = step()?.compiled(is_compiled).accumulate(parts);
            let scaled = step()?.compiled(is_compiled).accumulate(parts);
            let mut scaled = scaled.loss_scale(LossScale::Fixed(1024.0))?;
            for _ in 0..4 {
                let (a, b) = (plain.run((&x, &y))?, scaled.run((&x, &y))?);
                assert_eq!(a.item()?, b.item()?);
            }
            assert_eq!(numbers(&plain)?, numbers(&scaled)?);
            assert_eq!(scaled.report().is_empty(), !is_compiled);
        }
    }
    Ok(())
}

#[test]
fn a_step_that_is_not_finite_is_left_out() -> Result<()> {
    let (x, y) = batch()?;
    let bad = (&x * f64::NAN)?;
    for is_compiled in [false, true] {
        let new = || {
            step()?
                .compiled(is_compiled)
                .clip_grad_norm(1.0)
                .loss_scale(LossScale::Fixed(1.0))
        };
        let (mut one, mut other) = (new()?, new()?);
        for run in [&mut one, &mut other] {
            run.run((&x, &y))?;
        }
        let before = numbers(&one)?;
        assert!(one.run((&bad, &y))?.item()?.is_nan());
        assert_eq!(numbers(&one)?, before);
        assert_eq!((one.skipped()?, one.steps(), other.skipped()?), (1, 2, 0));
        // What follows is as if it had not been.
        for _ in 0..2 {
            assert_eq!(one.run((&x, &y))?.item()?, other.run((&x, &y))?.item()?);
        }
        assert_eq!(numbers(&one)?, numbers(&other)?);
    }
    Ok(())
}

#[test]
fn a_scale_shrinks_and_grows() -> Result<()> {
    let (x, y) = batch()?;
    let how = LossScale::Dynamic {
        initial: 256.0,
        growth_interval: 2,
    };
    let mut run = step()?.loss_scale(how)?;
    let file =
        std::env::temp_dir().join(format!("fx_loss_scale_{}.safetensors", std::process::id()));
    let mut found = Vec::new();
    for input in [&x, &x, &(&x * f64::INFINITY)?, &x, &x, &x] {
        run.run((input, &y))?;
        run.save(&file)?;
        let state = fx_nn::weights::Checkpoint::open(&file)?;
        found.push(state.tensor("state.loss_scale.scale")?.item()?);
    }
    assert_eq!(found, [256.0, 512.0, 256.0, 256.0, 512.0, 512.0]);
    let mut resumed = step()?.loss_scale(how)?;
    resumed.load(&file)?;
    assert_eq!(resumed.skipped()?, 1);
    assert_eq!(resumed.run((&x, &y))?.item()?, run.run((&x, &y))?.item()?);
    std::fs::remove_file(&file).map_err(Error::other)
}

#[test]
fn a_model_computes_in_bf16_and_learns() -> Result<()> {
    let (x, y) = batch()?;
    let mut wide = step()?;
    let mut compiled = step()?
        .mixed_precision(DType::BF16)
        .loss_scale(LossScale::default())?;
    let mut run = step()?.compiled(false).mixed_precision(DType::BF16);
    let (mut first, mut last) = (0.0, 0.0);
    for at in 0..30 {
        let losses = [&mut wide, &mut compiled, &mut run].map(|step| step.run((&x, &y))?.item());
        let [wide, compiled, run] = losses;
        last = compiled?;
        if at == 0 {
            first = last;
        }
        assert!((last - wide?).abs() < 0.03, "{at}");
        assert!((last - run?).abs() < 0.02, "{at}");
    }
    assert!(last < first / 3.0, "{first} {last}");
    for tensor in compiled.state_dict()?.values() {
        assert_ne!(tensor.dtype()?, DType::BF16);
    }
    Ok(())
}

#[test]
fn what_is_no_scale_is_refused() -> Result<()> {
    let net = net()?;
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let step = TrainStep::new(&net, loss(), SGD::new(&net)?)?;
        let error = step
            .loss_scale(LossScale::Fixed(scale))
            .err()
            .map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("above 0")));
    }
    Ok(())
}
