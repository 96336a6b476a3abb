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

/// How far compiled code is from the graph of a model that is made here, by random numbers of the host.
pub fn own_difference() -> Result<f64> {
    let gm = made("gpt2")?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let pairs = given(&gm, "gpt2")?.into_iter().zip(given(&fast, "gpt2")?);
    Ok(pairs
        .map(|(one, other)| (one - other).abs())
        .fold(0.0, f64::max))
}

/// The gradient of the sum of squares at 1, 2 and 3.
pub fn gradient() -> Result<Vec<f64>> {
    let squares = grad(traced!(|x: &Tensor| (x * x)?.sum(..)));
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], 3)?;
    squares.call::<Tensor>(&x)?.to_vec()
}

/// What the host cannot do, a line each: `name: error`.
pub fn refused() -> Vec<String> {
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

/// The instructions that compiled code uses.
pub fn level() -> String {
    format!("{:?}", Level::best())
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod exports {
    use wasm_bindgen::prelude::*;

    fn thrown<T>(result: fx_nn::Result<T>) -> Result<T, JsError> {
        result.map_err(|error| JsError::new(&error.to_string()))
    }

    #[wasm_bindgen]
    pub fn outputs(name: &str, file: &[u8]) -> Result<Vec<f64>, JsError> {
        thrown(super::outputs(name, file))
    }

    #[wasm_bindgen]
    pub fn own_difference() -> Result<f64, JsError> {
        thrown(super::own_difference())
    }

    #[wasm_bindgen]
    pub fn gradient() -> Result<Vec<f64>, JsError> {
        thrown(super::gradient())
    }

    #[wasm_bindgen]
    pub fn refused() -> Vec<String> {
        super::refused()
    }

    #[wasm_bindgen]
    pub fn level() -> String {
        super::level()
    }
}
