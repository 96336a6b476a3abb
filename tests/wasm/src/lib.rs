//! ResNet-18 and a GPT-2 of width 64, for `.ci/wasm`: graphs that are made on the machine that compiles, and run in
//! WebAssembly beside it.

use fx_nn::cpu::{Cpu, Level};
use fx_nn::func::{Transform, grad};
use fx_nn::models::gpt2::{Config, Gpt2};
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;

/// The models by name.
pub const MODELS: [&str; 2] = ["resnet18", "gpt2"];

/// A model as a graph, with random weights.
pub fn made(name: &str) -> Result<GraphModule> {
    let mut model: Box<dyn Module> = match name {
        "resnet18" => Box::new(resnet18(1000)?),
        _ => Box::new(Gpt2::new(&Config {
            vocab_size: 256,
            block_size: 64,
            n_layer: 4,
            n_head: 4,
            n_embd: 64,
            dropout: 0.0,
        })?),
    };
    nn::set_requires_grad(&mut *model, false)?;
    model.eval();
    symbolic_trace(&*model)
}

fn input(name: &str) -> Result<Tensor> {
    match name {
        "resnet18" => {
            let pixels = (0..3 * 224 * 224).map(|i| (i * 7 % 255) as f32 / 127.5 - 1.0);
            Tensor::from_vec(pixels.collect(), (1, 3, 224, 224))
        }
        _ => Tensor::from_vec((0..48).map(|i| i * 37 % 256).collect::<Vec<i64>>(), (1, 48)),
    }
}

fn given(gm: &GraphModule, name: &str) -> Result<Vec<f64>> {
    let result: Tensor = gm.forward(&input(name)?)?;
    result.reshape(-1)?.to_vec()
}

/// What the graph of a file gives: as a graph, as scalar code, and as code of the widest vectors.
pub fn outputs(name: &str, file: &[u8]) -> Result<Vec<f64>> {
    let gm = GraphModule::from_bytes(file)?;
    let mut all = given(&gm, name)?;
    for level in [Level::Scalar, Level::best()] {
        let fast = gm.compile(Compile::new(Cpu::new().level(level)))?;
        all.extend(given(&fast, name)?);
    }
    Ok(all)
}

/// How far what a file gives here is from these numbers, one a line.
///
/// # Errors
/// Returns an error if it is further than 1e-5 of the largest one, or of 1.
pub fn compare(name: &str, file: &[u8], numbers: &str) -> Result<String> {
    let ours = outputs(name, file)?;
    let theirs = numbers
        .lines()
        .map(|line| line.parse().map_err(Error::other));
    let theirs: Vec<f64> = theirs.collect::<Result<_>>()?;
    let pairs = ours.iter().zip(&theirs);
    let difference = pairs
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f64::max);
    let largest = theirs.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let count = ours.len();
    let line = format!("wasm.difference/{name} {difference:.1e} of {largest:.2}, {count} numbers");
    match count == theirs.len() && difference <= 1e-5 * largest.max(1.0) {
        true => Ok(line),
        false => Err(Error::msg(format_args!("another result: {line}"))),
    }
}

/// How far compiled code is from the graph of a model that is made here, by random numbers of the host.
fn own_difference() -> Result<f64> {
    let gm = made("gpt2")?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let pairs = given(&gm, "gpt2")?.into_iter().zip(given(&fast, "gpt2")?);
    Ok(pairs
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f64::max))
}

/// The gradient of the sum of squares at 1, 2 and 3.
fn gradient() -> Result<Vec<f64>> {
    let squares = grad(traced!(|x: &Tensor| (x * x)?.sum(..)));
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], 3)?;
    squares.call::<Tensor>(&x)?.to_vec()
}

/// What the host cannot do, a line each: `name: error`.
fn refused() -> Vec<String> {
    let mut lines = Vec::new();
    let mut tries = |name: &str, tried: Result<()>| {
        if let Err(error) = tried {
            lines.push(format!("{name}: {error}"));
        }
    };
    tries("load", GraphModule::load("nothing.fx").map(drop));
    tries(
        "save",
        made("gpt2").and_then(|gm| gm.save("nowhere/model.fx")),
    );
    tries(
        "backward",
        || -> Result<()> {
            let x = Tensor::ones(2)?.into_parameter()?;
            x.sum(..)?.backward().map(drop)
        }(),
    );
    lines
}

/// What there is besides the files, a line each.
pub fn report() -> Result<String> {
    let mut lines = vec![
        format!("wasm.level {:?}", Level::best()),
        format!("wasm.own_difference {:.1e}", own_difference()?),
        format!("wasm.gradient {:?}", gradient()?),
    ];
    lines.extend(refused().iter().map(|line| format!("wasm.refused {line}")));
    Ok(lines.join("\n"))
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod exports {
    use wasm_bindgen::prelude::*;

    fn thrown<T>(result: fx_nn::Result<T>) -> Result<T, JsError> {
        result.map_err(|error| JsError::new(&error.to_string()))
    }

    #[wasm_bindgen]
    pub fn compare(name: &str, file: &[u8], numbers: &str) -> Result<String, JsError> {
        thrown(super::compare(name, file, numbers))
    }

    #[wasm_bindgen]
    pub fn report() -> Result<String, JsError> {
        thrown(super::report())
    }
}
