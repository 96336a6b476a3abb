//! Trains four small networks on images of digits and records their weights; shows what integers cost each of them, and
//! that training with the rounding makes 4 bits of weights enough.
//!
//! `cargo run --release -p fx-quant --example digits [-- --record]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod nets;

use fx_nn::optim::{AdamW, Optimizer};
use fx_nn::prelude::*;
use fx_nn::weights;
use fx_quant::{Integers, QConfig, Quantize, Scheme};

use nets::{TRAIN, accuracy, classes_of, depthwise, digits, folder, mlp, part, residual, vit};

const BATCH: usize = 50;

/// Trains by batches in an order that changes, and moves the images a little.
fn train(
    forward: impl Fn(&Tensor) -> Result<Tensor>,
    mut optimizer: AdamW,
    epochs: usize,
) -> Result<()> {
    let (images, classes) = digits()?;
    let loss = nn::CrossEntropyLoss::default();
    for epoch in 0..epochs {
        for at in 0..TRAIN / BATCH {
            let from = (at * 7 + epoch) % (TRAIN / BATCH) * BATCH;
            let x = part(&images, from, BATCH)?;
            let x = (&x + (Tensor::randn(x.dims()?.to_vec())? * 0.05)?)?;
            let y = Tensor::from_vec(classes[from..from + BATCH].to_vec(), BATCH)?;
            let loss = loss.forward(&forward(&x)?, &y)?;
            optimizer.step(&loss.backward()?)?;
        }
    }
    Ok(())
}

/// A network in evaluation, with recorded weights; they are recorded first if that is asked for.
macro_rules! trained {
    ($name:ident, $record:expr) => {{
        let mut model = $name()?;
        let file = folder().join(concat!(stringify!($name), ".safetensors"));
        if $record {
            let optimizer = AdamW::new(&model)?.lr(0.003).weight_decay(0.01);
            train(|x| model.forward(x), optimizer, 40)?;
            weights::save(&model, &file)?;
        }
        weights::load(&mut model, &file)?;
        model.eval();
        symbolic_trace(&model)?
    }};
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let record = std::env::args().any(|arg| arg == "--record");
    let all = [
        ("mlp", trained!(mlp, record)),
        ("residual", trained!(residual, record)),
        ("depthwise", trained!(depthwise, record)),
        ("vit", trained!(vit, record)),
    ];
    let (images, classes) = digits()?;
    let test = part(&images, TRAIN, classes.len() - TRAIN)?;
    let truth = &classes[TRAIN..];
    let batches: Vec<Tensor> = (0..8)
        .map(|at| part(&images, at * BATCH, BATCH))
        .collect::<Result<_>>()?;
    for (name, gm) in all {
        let float = classes_of(&gm, &test)?;
        let agrees = |other: &GraphModule| -> Result<f64> {
            let found = classes_of(other, &test)?;
            let same = found.iter().zip(&float).filter(|(a, b)| a == b).count();
            Ok(same as f64 / float.len() as f64)
        };
        let plan = Quantize::new(QConfig::default()).plan(&gm)?;
        let calibration = plan.calibrate(&batches)?;
        let mut int8 = plan.convert(&calibration)?;
        let left = int8.lower(&Integers::new())?.left.len();
        let tensor = Quantize::new(QConfig::default().per_channel(false)).plan(&gm)?;
        let per_tensor = tensor.convert(&tensor.calibrate(&batches)?)?;
        println!(
            "{name}: right {:.4}, agreement of int8 {:.4} (one scale a weight {:.4}), calls left in floats {left}",
            accuracy(&gm, &test, truth)?,
            agrees(&int8)?,
            agrees(&per_tensor)?
        );

        // Four bits of weights: as they are, and after training with the rounding.
        let four = Quantize::new(QConfig::default().weight(Scheme::INT4)).plan(&gm)?;
        let calibration = four.calibrate(&batches)?;
        let as_is = four.convert(&calibration)?;
        let training = four.prepare_qat(&calibration)?;
        let optimizer = AdamW::new(&training)?.lr(0.001).weight_decay(0.0);
        train(|x| training.forward(x), optimizer, 8)?;
        let four = four.with_parameters_of(&training)?;
        let trained = four.convert(&four.calibrate(&batches)?)?;
        println!(
            "{name}: 4 bits: right {:.4}, after training {:.4}",
            accuracy(&as_is, &test, truth)?,
            accuracy(&trained, &test, truth)?
        );
    }
    Ok(())
}
