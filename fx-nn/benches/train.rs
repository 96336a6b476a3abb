//! The fx side of `train.py`, which compares training steps with PyTorch, JAX and candle, and builds this program. It
//! answers lines of standard input: `load FOLDER` (a model with its inputs), `step COUNT` (the time of each step in
//! ms), `state FILE` (the parameters as they are), `profile` (what each kind of step took in one run, in ms), `memory`
//! (the planned bytes of the last step).

#[path = "support/lines.rs"]
mod lines;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use fx_nn::models::convnext::CNBlock;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet18;
use fx_nn::module::Module;
use fx_nn::optim::AdamW;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, TracedFn};
use fx_nn::train::TrainStep;
use fx_nn::value::IntoValue;
use fx_nn::weights::{self, Checkpoint};

use lines::answer_each;

struct Loaded {
    step: TrainStep,
    args: CallArgs,
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
    let optimizer = AdamW::new(&model)?.lr(1e-3).weight_decay(0.01);
    Ok(Loaded {
        step: TrainStep::new(&model, loss, optimizer)?,
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
        Some("resnet18") => loaded(resnet18(1000)?, scores(), folder),
        Some(name) if name.starts_with("gpt2") => {
            let config = Config {
                block_size: 256,
                dropout: 0.0,
                ..Config::default()
            };
            loaded(Gpt2::new(&config)?, scores(), folder)
        }
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
    let Loaded { step, args } = loaded
        .as_mut()
        .ok_or_else(|| Error::msg("no model is loaded"))?;
    Ok(match words[..] {
        ["step", count] => {
            let mut times = Vec::new();
            for _ in 0..count.parse::<usize>().map_err(Error::other)? {
                let start = Instant::now();
                step.run(args.clone())?;
                times.push(format!("{:.3}", start.elapsed().as_secs_f64() * 1e3));
            }
            times.join(" ")
        }
        ["state", file] => {
            weights::save_tensors(step.state_dict()?, file)?;
            "saved".to_string()
        }
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

fn main() {
    let mut loaded = None;
    answer_each(|line| answer(line, &mut loaded));
}
