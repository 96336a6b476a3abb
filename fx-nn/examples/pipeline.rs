//! GPT-2 and ResNet-18 in four stages on four threads: the same numbers and gradients as one thread,
//! stages of about the same cost, and all of them at work at once.
//!
//! `cargo run --release -p fx-nn --example pipeline`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::thread::sleep;
use std::time::{Duration, Instant};

use fx_nn::Gradients;
use fx_nn::ir::{Graph, NodeRef};
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::pipeline::{
    Pipeline, PipelineOptions, PipelineRunner, Schedule, Stage, StageWorker, multiply_adds,
};
use fx_nn::prelude::*;
use fx_nn::value::NodeId;

const STAGES: usize = 4;
const MICRO_BATCHES: usize = 4;

/// The graph in stages, by multiply-adds, with few bytes between them.
fn in_stages(gm: &mut GraphModule, x: &Tensor) -> Result<Pipeline> {
    gm.propagate_shapes(x)?;
    let cost = multiply_adds(gm, x)?;
    PipelineOptions::new().cost(cost).pipeline(gm, STAGES)
}

/// Rows of a batch.
fn rows(x: &Tensor, at: usize, each: usize) -> Result<Tensor> {
    ops::narrow(x, 0, (at * each) as i64, each as i64)
}

/// The largest difference, and the same as a share of the largest number.
fn difference(a: &Tensor, b: &Tensor) -> Result<(f64, f64)> {
    let absolute: f64 = (a - b)?.abs()?.amax(..)?.item()?;
    let largest: f64 = b.abs()?.amax(..)?.item()?;
    Ok((absolute, absolute / largest.max(f64::MIN_POSITIVE)))
}

/// The errors of a pipeline: against one thread that runs the same micro-batches, and against the
/// whole batch at once.
struct Errors {
    one_thread: f64,
    whole_batch: f64,
}

impl Errors {
    fn against_one_thread(&mut self, found: &Tensor, expected: &Tensor) -> Result<()> {
        self.one_thread = self.one_thread.max(difference(found, expected)?.0);
        Ok(())
    }

    fn against_whole_batch(&mut self, found: &Tensor, expected: &Tensor) -> Result<()> {
        self.whole_batch = self.whole_batch.max(difference(found, expected)?.1);
        Ok(())
    }
}

/// Compares results and gradients under both schedules.
fn compare(
    gm: &mut GraphModule,
    x: &Tensor,
    target: &Tensor,
    loss: impl Fn(Tensor, &Tensor) -> Result<Tensor> + Sync,
    errors: &mut Errors,
) -> Result<()> {
    let pipeline = in_stages(gm, x)?;
    print!("{pipeline}");
    let runner = PipelineRunner::new(&pipeline, MICRO_BATCHES);
    let each = x.dims()?[0] / MICRO_BATCHES;

    // One thread, the same micro-batches in the same order.
    let mut outputs = Vec::new();
    let mut gradients: Option<Gradients> = None;
    for at in 0..MICRO_BATCHES {
        let y: Tensor = gm.forward(&rows(x, at, each)?)?;
        let one = loss(y.clone(), &rows(target, at, each)?)?.backward()?;
        outputs.push(y.detach()?);
        match &mut gradients {
            Some(sum) => sum.accumulate(&one)?,
            none => *none = Some(one),
        }
    }
    let gradients = gradients.ok_or_else(|| Error::msg("there are micro-batches"))?;
    let one_thread = ops::cat(&outputs, 0)?;

    // The whole batch at once.
    let whole: Tensor = gm.forward(x)?;
    let of_whole = loss(whole.clone(), target)?.backward()?;

    let found: Tensor = runner.forward(x)?;
    errors.against_one_thread(&found, &one_thread)?;
    errors.against_whole_batch(&found, &whole)?;
    for schedule in [Schedule::GPipe, Schedule::OneForwardOneBackward] {
        let step = runner.step(schedule, x, target, &loss)?;
        errors.against_one_thread(&ops::cat(&step.outputs, 0)?, &one_thread)?;
        for parameter in nn::variables(gm)? {
            let parameter = Tensor::from(parameter.as_tensor().clone());
            let [found, expected, whole] =
                [&step.gradients, &gradients, &of_whole].map(|gradients| gradients.get(&parameter));
            let (Some(found), Some(expected), Some(whole)) = (found?, expected?, whole?) else {
                return Err(Error::msg("each parameter has a gradient"));
            };
            errors.against_one_thread(&found, &expected)?;
            errors.against_whole_batch(&found, &whole)?;
        }
    }
    Ok(())
}

/// Takes 50 ms, and no processor.
#[wrap]
fn nap(x: &Tensor) -> Result<Tensor> {
    sleep(NAP);
    Ok(x.clone())
}

const NAP: Duration = Duration::from_millis(50);

/// Naps forward and, twice as long, backward.
struct Napping<'s>(&'s Stage);

impl StageWorker for Napping<'_> {
    fn forward(&mut self, _: usize, inputs: Vec<Value>) -> Result<Vec<Value>> {
        self.0.run(inputs)
    }

    fn backward(&mut self, _: usize, gradients: Vec<Value>) -> Result<Vec<Value>> {
        sleep(2 * NAP);
        Ok(gradients)
    }
}

/// The ideal time of a pipeline of sleeping stages, divided by the measured one: the least of all
/// schedules.
fn overlap() -> Result<f64> {
    let gm = symbolic_trace(traced!(|x: &Tensor| nap(&nap(&nap(&nap(x)?)?)?)))?;
    let pipeline = PipelineOptions::new().pipeline(&gm, STAGES)?;
    let micro_batches = 12;
    let x = Value::object(Tensor::ones((2, 3))?);
    let mut least = f64::MAX;
    for schedule in [
        Schedule::Forward,
        Schedule::GPipe,
        Schedule::OneForwardOneBackward,
    ] {
        let naps = if schedule.has_backward() { 3 } else { 1 };
        let ideal = NAP * naps * (micro_batches + STAGES - 1) as u32;
        let mut workers: Vec<Napping<'_>> = pipeline.stages().iter().map(Napping).collect();
        let batches = vec![vec![x.clone()]; micro_batches];
        let start = Instant::now();
        pipeline.run_with(schedule, batches, &mut workers)?;
        let measured = start.elapsed();
        println!("{schedule:?}: ideal {ideal:?}, measured {measured:?}");
        least = least.min(ideal.as_secs_f64() / measured.as_secs_f64());
    }
    Ok(least)
}

/// The least cost of the largest of some stages, over all cuts.
fn exhaustive(costs: &[u64], stages: usize) -> u64 {
    if stages == 1 {
        return costs.iter().sum();
    }
    let ends = 1..=costs.len() + 1 - stages;
    let largest = ends.map(|end| {
        let first: u64 = costs[..end].iter().sum();
        first.max(exhaustive(&costs[end..], stages - 1))
    });
    largest.min().unwrap_or(u64::MAX)
}

/// How much larger than it has to be the largest stage is, in 200 random graphs of 16 calls.
fn largest_stage_over_optimum() -> Result<f64> {
    let mut worst = 0f64;
    for _ in 0..200 {
        let random: Vec<f64> = Tensor::rand(33)?.to_vec()?;
        let mut graph = Graph::new();
        let mut values: Vec<NodeId> = vec![graph.placeholder("x")?];
        for share in &random[..16] {
            let other = values[(share * values.len() as f64) as usize];
            let last = values[values.len() - 1];
            values.push(graph.call_function(fx_nn::operator::add, (last, other), ())?);
        }
        graph.output(values[16])?;
        let gm = GraphModule::new(Default::default(), graph, "Random")?;
        let costs: Vec<u64> = random[16..32]
            .iter()
            .map(|x| 1 + (x * x * 1000.0) as u64)
            .collect();
        let stages = 2 + (random[32] * 5.0) as usize;
        let mut next = costs.iter().copied();
        let cost = |_: NodeRef<'_>| next.next().unwrap_or(0);
        let pipeline = PipelineOptions::new().cost(cost).pipeline(&gm, stages)?;
        let largest = pipeline
            .stages()
            .iter()
            .map(|stage| stage.cost)
            .max()
            .unwrap_or(0);
        worst = worst.max(largest as f64 / exhaustive(&costs, stages) as f64);
    }
    Ok(worst)
}

fn main() -> Result<()> {
    fx_nn::manual_seed(1);
    let mut errors = Errors {
        one_thread: 0.0,
        whole_batch: 0.0,
    };

    println!("GPT-2, 8 texts of 32 words:");
    let config = Config {
        vocab_size: 500,
        block_size: 32,
        n_layer: 4,
        n_head: 4,
        n_embd: 64,
        dropout: 0.0,
    };
    let mut gpt2 = symbolic_trace(&Gpt2::new(&config)?)?;
    let words: Vec<i64> = Tensor::rand(8 * 33)?
        .to_vec()?
        .iter()
        .map(|x| (x * 500.0) as i64)
        .collect();
    let x = Tensor::from_vec(words[..8 * 32].to_vec(), (8, 32))?;
    let next = Tensor::from_vec(words[8..].to_vec(), (8, 32))?;
    let loss = |y: Tensor, next: &Tensor| {
        let (y, next) = (y.flatten(0, 1)?, next.flatten(0, 1)?);
        ops::cross_entropy(&y, &next, None, -100, "sum", 0.0)
    };
    compare(&mut gpt2, &x, &next, loss, &mut errors)?;

    println!("ResNet-18, 8 images of 64 by 64:");
    let mut model = resnet18(10)?;
    model.eval(); // a batch norm in training mixes the rows of a batch
    let mut resnet = symbolic_trace(&model)?;
    let x = Tensor::randn((8, 3, 64, 64))?;
    let target = Tensor::from_vec((0..8i64).collect(), 8)?;
    let loss = |y: Tensor, target: &Tensor| ops::cross_entropy(&y, target, None, -100, "sum", 0.0);
    compare(&mut resnet, &x, &target, loss, &mut errors)?;

    println!("Sleeping stages:");
    let overlap = overlap()?;
    println!("max_abs_err: {}", errors.one_thread);
    println!("max_rel_err_whole_batch: {:.3e}", errors.whole_batch);
    println!("overlap: {overlap:.3}");
    println!(
        "largest_stage_over_optimum: {:.3}",
        largest_stage_over_optimum()?
    );
    Ok(())
}
