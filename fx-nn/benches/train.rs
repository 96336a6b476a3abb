//! The fx side of `train.py`, which compares training steps with PyTorch, JAX and candle, and builds this program. It
//! answers lines of standard input: `load FOLDER` (a model with its inputs), `step COUNT` (the time of each step in
//! ms), `recompute SHARE` (the steps from now on keep less), `tape COUNT` (the time of each step by candle's tape),
//! `state FILE` (the parameters as they are), `before` (the KiB that the process had
//! before there was a step), `planned` (the bytes that steps hold), `profile` (what each kind of step took in one run, in ms).

#[path = "support/gpt2.rs"]
mod gpt2;
#[path = "support/lines.rs"]
mod lines;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use fx_nn::func::Recompute;
use fx_nn::models::convnext::CNBlock;
use fx_nn::models::resnet::resnet18;
use fx_nn::module::{Component, Module};
use fx_nn::optim::{AdamW, Optimizer};
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, TracedFn};
use fx_nn::train::TrainStep;
use fx_nn::value::IntoValue;
use fx_nn::weights::{self, Checkpoint};

use lines::answer_each;

struct Loaded {
    /// The KiB that the process had with the model alone.
    before: u64,
    /// It is taken out while it is changed.
    step: Option<TrainStep>,
    args: CallArgs,
    tape: Option<Tape>,
}

/// The same step by candle's tape, operation by operation.
struct Tape {
    model: GraphModule,
    loss: GraphModule,
    optimizer: AdamW,
}

impl Tape {
    fn step(&mut self, args: &CallArgs) -> Result<()> {
        let [x, y] = &args.args[..] else {
            return Err(Error::msg("a step takes two inputs"));
        };
        let found: Value = self.model.forward(x.clone())?;
        let loss: Tensor = self.loss.forward((found, y.clone()))?;
        self.optimizer.step(&loss.backward()?)
    }
}

/// The optimizer; its divisor is not small, since the direction of a gradient near zero is noise.
fn optimizer(model: &(impl Component + ?Sized)) -> Result<AdamW> {
    Ok(AdamW::new(model)?.lr(1e-3).weight_decay(0.01).eps(1e-4))
}

fn scores() -> TracedFn {
    traced!(|scores: &Tensor, y: &Tensor| {
        let classes = scores.size(-1)?;
        let scores = scores.reshape((-1, classes))?;
        ops::cross_entropy(&scores, &y.reshape([-1])?, None, -100, "mean", 0.0)
    })
}

fn squares() -> TracedFn {
    traced!(|found: &Tensor, y: &Tensor| (found - y)?.square()?.mean(..))
}

/// A step of a model with the weights of a file, and its options.
fn loaded(mut model: impl Module, loss: TracedFn, folder: &Path) -> Result<Loaded> {
    weights::load(&mut model, folder.join("model.safetensors"))?;
    model.train();
    let inputs = Checkpoint::open(folder.join("inputs.safetensors"))?;
    let args = ["x", "y"].map(|name| inputs.tensor(name).map(IntoValue::into_value));
    // Before there is a step.
    let before = memory()?;
    // The step has copies of the parameters, the tape those of the model.
    let traced = symbolic_trace(&model)?;
    Ok(Loaded {
        before,
        step: Some(TrainStep::new(&model, loss.clone(), optimizer(&model)?)?),
        tape: Some(Tape {
            optimizer: optimizer(&traced)?,
            model: traced,
            loss: symbolic_trace(loss)?,
        }),
        args: CallArgs {
            args: args.into_iter().collect::<Result<_>>()?,
            kwargs: Vec::new(),
        },
    })
}

fn load(folder: &Path) -> Result<Loaded> {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("mlp") => {
            let layers = nn::Sequential::new()
                .push(nn::Linear::new(784, 1024)?)
                .push(nn::ReLU::new())
                .push(nn::Linear::new(1024, 1024)?)
                .push(nn::ReLU::new())
                .push(nn::Linear::new(1024, 10)?);
            loaded(layers, scores(), folder)
        }
        Some(name) if name.starts_with("resnet18") => loaded(resnet18(1000)?, scores(), folder),
        Some(name) if name.starts_with("gpt2") => loaded(gpt2::Gpt2::new(256)?, scores(), folder),
        Some("convnext_block") => loaded(CNBlock::new(192, 0.0)?, squares(), folder),
        name => Err(Error::msg(format_args!("no model is named {name:?}"))),
    }
}

fn answer(line: &str, loaded: &mut Option<Loaded>) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let ["load", folder] = words[..] {
        *loaded = None;
        *loaded = Some(load(Path::new(folder))?);
        return Ok("loaded".to_string());
    }
    let Loaded {
        before,
        step,
        args,
        tape,
    } = loaded
        .as_mut()
        .ok_or_else(|| Error::msg("no model is loaded"))?;
    let times = |count: &str, run: &mut dyn FnMut() -> Result<()>| -> Result<String> {
        let mut times = Vec::new();
        for _ in 0..count.parse::<usize>().map_err(Error::other)? {
            let start = Instant::now();
            run()?;
            times.push(format!("{:.3}", start.elapsed().as_secs_f64() * 1e3));
        }
        Ok(times.join(" "))
    };
    if let ["recompute", share] = words[..] {
        let share = share.parse().map_err(Error::other)?;
        *step = step
            .take()
            .map(|step| step.recompute(Recompute::share(share)));
        *tape = None;
        return Ok("recompute".to_string());
    }
    if let ["tape", count] = words[..] {
        let tape = tape
            .as_mut()
            .ok_or_else(|| Error::msg("there is no tape"))?;
        return times(count, &mut || tape.step(args));
    }
    let step = step
        .as_mut()
        .ok_or_else(|| Error::msg("there is no step"))?;
    Ok(match words[..] {
        ["step", count] => times(count, &mut || step.run(args.clone()).map(drop))?,
        ["state", file] => {
            weights::save_tensors(step.state_dict()?, file)?;
            "saved".to_string()
        }
        ["before"] => before.to_string(),
        ["planned"] => (step.planned_bytes() + fx_kernels::scratch_bytes()).to_string(),
        ["profile"] => {
            let (mut kinds, mut calls) = (BTreeMap::<String, (f64, usize)>::new(), Vec::new());
            step.run_timed(args.clone(), &mut |run| {
                let ms = run.time.as_secs_f64() * 1e3;
                let kind = kinds.entry(run.step.name.clone()).or_default();
                *kind = (kind.0 + ms, kind.1 + 1);
                calls.push((ms, run.step.nodes.join(" "), run.step.name.clone()));
            })?;
            let mut kinds: Vec<_> = kinds.into_iter().collect();
            kinds.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
            calls.sort_by(|a, b| b.0.total_cmp(&a.0));
            let kinds = kinds
                .iter()
                .map(|(name, (ms, n))| format!("{ms:.2} {n}x {name}"));
            let calls = calls.iter().take(30);
            let calls = calls.map(|(ms, nodes, name)| format!("  {ms:.2} {name}: {nodes:.60}"));
            kinds.chain(calls).collect::<Vec<_>>().join("; ")
        }
        _ => return Err(Error::msg(format_args!("what is `{line}`?"))),
    })
}

/// The KiB of memory of this process.
fn memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(Error::other)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Error::msg("the system does not say how much memory a process has"))
}

fn main() {
    let mut loaded = None;
    answer_each(|line| answer(line, &mut loaded));
}
