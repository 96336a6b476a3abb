//! Trains a small network twice from one seed, eager and traced, and draws both curves: they
//! coincide.
//!
//! `cargo run --release -p fx-nn --example train [CURVE.svg]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use fx_nn::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;

const STEPS: usize = 200;
const BATCH: usize = 32;
const SIDE: usize = 12;

/// Convolution, batch norm, dropout and a classifier.
#[derive(Module, Clone, Debug)]
struct Net {
    conv: nn::Conv2d,
    bn: nn::BatchNorm2d,
    pool: nn::MaxPool2d,
    drop: nn::Dropout,
    fc: nn::Linear,
}

impl Net {
    fn new() -> Result<Self> {
        Ok(Net {
            conv: nn::Conv2d::new(1, 8, 3)?.padding(1),
            bn: nn::BatchNorm2d::new(8)?,
            pool: nn::MaxPool2d::new(2),
            drop: nn::Dropout::new(0.3)?,
            fc: nn::Linear::new(8 * SIDE * SIDE / 4, 3)?,
        })
    }
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(&self.bn.forward(&self.conv.forward(x)?)?)?;
        let x = self.pool.forward(&x)?.flatten(1, -1)?;
        self.fc.forward(&self.drop.forward(&x)?)
    }
}

/// Images of a row, a column or a diagonal with noise, and their classes.
fn batch() -> Result<(Tensor, Tensor)> {
    let places = Tensor::rand((BATCH, 2))?.to_vec()?;
    let mut images = vec![0f32; BATCH * SIDE * SIDE];
    let mut classes = Vec::with_capacity(BATCH);
    for (place, image) in places.chunks(2).zip(images.chunks_mut(SIDE * SIDE)) {
        let class = (place[0] * 3.0) as usize;
        let line = (place[1] * SIDE as f64) as usize;
        for i in 0..SIDE {
            let (row, column) = match class {
                0 => (line, i),
                1 => (i, line),
                _ => (i, (i + line) % SIDE),
            };
            image[row * SIDE + column] = 1.0;
        }
        classes.push(class as i64);
    }
    let noise = (Tensor::randn((BATCH, 1, SIDE, SIDE))? * 0.3)?;
    let images = (Tensor::from_vec(images, (BATCH, 1, SIDE, SIDE))? + noise)?;
    Ok((images, Tensor::from_vec(classes, BATCH)?))
}

/// Trains a model by its `forward`, and returns the losses.
fn train(
    name: &str,
    parameters: Vec<candle_core::Var>,
    forward: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<f64>> {
    let settings = ParamsAdamW {
        lr: 0.003,
        ..Default::default()
    };
    let mut optimizer = AdamW::new(parameters, settings).map_err(Error::other)?;
    let style = ProgressStyle::with_template("{prefix:7} {bar:40} {pos}/{len} {msg}");
    let bar = ProgressBar::new(STEPS as u64)
        .with_style(style.map_err(Error::other)?)
        .with_prefix(name.to_string());
    // The same batches and the same dropout in every training.
    fx_nn::manual_seed(2);
    let mut losses = Vec::with_capacity(STEPS);
    for _ in 0..STEPS {
        let (images, classes) = batch()?;
        let scores = forward(&images)?;
        let loss = ops::cross_entropy(&scores, &classes, None, -100, "mean", 0.0)?;
        optimizer
            .backward_step(loss.candle()?)
            .map_err(Error::other)?;
        losses.push(loss.item()?);
        bar.set_message(format!("loss {:.4}", loss.item()?));
        bar.inc(1);
    }
    bar.finish();
    Ok(losses)
}

fn draw(path: &str, curves: &[(&str, &[f64], RGBColor)]) -> Result<()> {
    let root = SVGBackend::new(path, (800, 480)).into_drawing_area();
    let draw = || -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        root.fill(&WHITE)?;
        let highest = curves.iter().flat_map(|(_, losses, _)| losses.iter());
        let highest = highest.copied().fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&root)
            .caption("cross entropy", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(32)
            .y_label_area_size(48)
            .build_cartesian_2d(0..STEPS, 0.0..highest)?;
        chart.configure_mesh().x_desc("step").draw()?;
        for (name, losses, color) in curves {
            let line = losses.iter().copied().enumerate();
            let color = *color;
            chart
                .draw_series(LineSeries::new(line, color))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        }
        chart.configure_series_labels().border_style(BLACK).draw()?;
        root.present()?;
        Ok(())
    };
    draw().map_err(Error::other)
}

fn accuracy(scores: &Tensor, classes: &Tensor) -> Result<f64> {
    let right = scores.argmax(-1, false)?.eq(classes)?;
    right.to_dtype(DType::F32)?.mean(..)?.item()
}

fn main() -> Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "target/train.svg".into());
    fx_nn::manual_seed(1);
    let eager = Net::new()?;
    let eager_losses = train("eager", nn::variables(&eager)?, |x| eager.forward(x))?;

    fx_nn::manual_seed(1);
    let mut traced = symbolic_trace(&Net::new()?)?;
    let variables = nn::variables(&traced)?;
    let traced_losses = train("traced", variables, |x| traced.forward(x))?;

    let difference = eager_losses
        .iter()
        .zip(&traced_losses)
        .fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs()));
    println!("first loss: {:.4}", eager_losses[0]);
    println!("last loss: {:.4}", eager_losses[STEPS - 1]);
    println!("max_abs_difference_of_losses: {difference}");

    // Dropout and BatchNorm follow the traced module's mode.
    let (images, classes) = batch()?;
    let twice = |traced: &fx_nn::GraphModule| -> Result<f64> {
        let (a, b): (Tensor, Tensor) = (traced.forward(&images)?, traced.forward(&images)?);
        (a - b)?.abs()?.amax(..)?.item()
    };
    println!("train_mode_runs_differ: {}", twice(&traced)? > 0.0);
    let mean = |traced: &fx_nn::GraphModule| -> Result<Vec<f64>> {
        let state = traced.state_dict();
        let mean = state.get("bn.running_mean").cloned().unwrap_or_default();
        Tensor::from_value(mean)?.to_vec()
    };
    traced.eval();
    let before = mean(&traced)?;
    println!("eval_mode_runs_differ: {}", twice(&traced)? > 0.0);
    println!("eval_mode_moves_running_mean: {}", mean(&traced)? != before);
    println!(
        "accuracy: {:.3}",
        accuracy(&traced.forward(&images)?, &classes)?
    );

    let curves = [
        ("eager", eager_losses.as_slice(), BLUE),
        ("traced", traced_losses.as_slice(), RED),
    ];
    draw(&path, &curves)?;
    println!("curve: {path}");
    Ok(())
}
