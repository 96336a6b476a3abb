//! What fx adds to calls of a plugin: the same programs by fx and by the C interface alone, in turns.
//!
//! `FX_PJRT_PLUGIN=PLUGIN cargo run --release -p fx-pjrt --example pjrt_overhead -- [FOLDER]`: an empty program, ResNet-50
//! and a step of GPT-2. With a folder the programs are written there too, for `tests/jax_times.py`.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/bare.rs"]
#[allow(unsafe_code, reason = "the C interface without fx")]
mod bare;

use std::path::PathBuf;
use std::time::Instant;

use bare::Bare;
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet50;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_pjrt::{DeviceTensor, LoadedProgram, Pjrt};
use fx_stablehlo::{ArgumentKind, Export, Program, StableHloExt};

/// The C interface's number of an element type.
fn number(dtype: DType) -> Result<u32> {
    match dtype {
        DType::Bool => Ok(1),
        DType::I64 => Ok(5),
        DType::F32 => Ok(11),
        other => Err(Error::msg(format_args!("no program here has {other}"))),
    }
}

/// A program both ways.
struct Both {
    fx: LoadedProgram,
    inputs: Vec<DeviceTensor>,
    bare: Bare,
}

impl Both {
    fn new(pjrt: &Pjrt, gm: &GraphModule, inputs: &[&Tensor]) -> Result<Self> {
        let args = fx_nn::trace::CallArgs {
            args: inputs.iter().map(|x| Value::object((*x).clone())).collect(),
            kwargs: Vec::new(),
        };
        let program = Program::of(gm, &Export::example(args))?;
        let fx = LoadedProgram::new(pjrt.client(), &program)?;
        let mut bare = Bare::new(
            pjrt.client().plugin().path(),
            program.text(),
            program.results().len(),
        )?;
        let mut given = inputs.iter();
        for argument in program.arguments() {
            let tensor = match argument.kind {
                ArgumentKind::Input(_) => given.next().map(|x| (*x).clone()),
                ArgumentKind::Weight { value, .. } => value.downcast_ref::<Tensor>().cloned(),
                _ => None,
            };
            let tensor = tensor.ok_or_else(|| Error::msg("an argument is missing"))?;
            bare.argument(
                number(argument.dtype)?,
                argument.shape,
                &tensor.to_data()?.bytes()?,
            )?;
        }
        Ok(Both {
            inputs: fx.place(inputs.iter().copied())?,
            fx,
            bare,
        })
    }

    /// Seconds of `count` calls by fx and by the interface; with `wait`, each until its results are there.
    fn turn(&mut self, count: usize, wait: bool) -> Result<(f64, f64)> {
        let inputs: Vec<&DeviceTensor> = self.inputs.iter().collect();
        let start = Instant::now();
        for _ in 0..count {
            let results = self.fx.run(&inputs)?;
            if wait {
                results[0].wait()?;
            }
        }
        let middle = Instant::now();
        for _ in 0..count {
            self.bare.run(wait)?;
        }
        let end = Instant::now();
        Ok(((middle - start).as_secs_f64(), (end - middle).as_secs_f64()))
    }

    /// The medians of turns.
    fn medians(&mut self, turns: usize, count: usize, wait: bool) -> Result<(f64, f64)> {
        self.turn(count, wait)?;
        let (mut fx, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let (a, b) = self.turn(count, wait)?;
            fx.push(a / count as f64);
            bare.push(b / count as f64);
        }
        let median = |all: &mut Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        Ok((median(&mut fx), median(&mut bare)))
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map(PathBuf::from);
    let pjrt = Pjrt::from_env()?;
    println!("{}", pjrt.client().plugin());
    for (name, value) in pjrt.client().plugin().attributes()? {
        println!("{name}: {value}");
    }
    let empty = symbolic_trace(traced!(|x: &Tensor| Ok(x.clone())))?;
    let (fx, bare) = Both::new(&pjrt, &empty, &[&Tensor::ones(4)?])?.medians(21, 20_000, false)?;
    println!(
        "call_us: {:.2} bare_us: {:.2} overhead_us: {:.2}",
        fx * 1e6,
        bare * 1e6,
        (fx - bare) * 1e6
    );

    fx_nn::manual_seed(0);
    let mut resnet = resnet50(1000)?;
    resnet.eval();
    let mut gpt2 = Gpt2::new(&Config::default())?;
    gpt2.eval();
    let image = Tensor::randn((1, 3, 224, 224))?;
    let tokens = Tensor::from_vec((0..64).collect::<Vec<i64>>(), (1, 64))?;
    for (name, gm, x) in [
        ("resnet50", symbolic_trace(&resnet)?, &image),
        ("gpt2", symbolic_trace(&gpt2)?, &tokens),
    ] {
        if let Some(folder) = &folder {
            gm.to_stablehlo(folder.join(name), &Export::example(x))?;
            let x = x.candle()?.contiguous().map_err(Error::other)?;
            let name_of_input = gm
                .graph()
                .placeholders()
                .next()
                .map(|node| node.target().to_string());
            let inputs = std::collections::HashMap::from([(name_of_input.unwrap_or_default(), x)]);
            let file = folder.join(name).join("inputs.safetensors");
            fx_nn::candle_core::safetensors::save(&inputs, file).map_err(Error::other)?;
        }
        let (fx, bare) = Both::new(&pjrt, &gm, &[x])?.medians(21, 3, true)?;
        println!(
            "{name}: fx_ms {:.2} bare_ms {:.2} ratio {:.3}",
            fx * 1e3,
            bare * 1e3,
            fx / bare
        );
    }
    Ok(())
}
