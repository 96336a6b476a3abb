//! The fx side of `engines.py`, which compares fx with PyTorch and ONNX Runtime and builds this
//! program. It answers lines of standard input: `load FOLDER`, `run ENGINE COUNT` (the least time
//! of so many runs in ms), `result ENGINE FILE`, `profile FILE` (what the steps of the compiled model
//! take).

#[path = "support/engines.rs"]
mod engines;
#[path = "support/lines.rs"]
mod lines;

use std::path::Path;

use fx_nn::cpu::Cpu;
use fx_nn::models::convnext::convnext_tiny;
use fx_nn::models::hf::decoder::Cache;
use fx_nn::models::hf::gpt2::{Config, GPT2LMHeadModel};
use fx_nn::models::mobilenet::mobilenet_v2;
use fx_nn::models::resnet::{resnet18, resnet50};
use fx_nn::models::vit::vit_b_16;
use fx_nn::module::{ComponentExt, Tag};
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, FromValue, IntoArgs};
use fx_nn::value::Value;
use fx_nn::weights::{self, Checkpoint};

use engines::answer_of_engine;
use lines::answer_each;

/// A model as each engine runs it.
struct Loaded {
    eager: Box<dyn Fn() -> Result<Tensor>>,
    compiled: GraphModule,
    direct: GraphModule,
    args: CallArgs,
}

/// Ten cheap operations, one after another.
#[derive(Module, Clone, Debug)]
struct Chain {
    tag: Tag,
}

#[trace]
impl Chain {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ops::relu(&((x * 1.5)? + 0.5)?)?;
        let y = ((&x * &x)? - 0.25)?;
        let y = y.clamp(-1.0, 3.0)?;
        ((y - &x)?.abs()? * 0.5)? + x
    }
}

fn loaded(
    traced: GraphModule,
    eager: Box<dyn Fn() -> Result<Tensor>>,
    args: impl IntoArgs,
) -> Result<Loaded> {
    let args = args.into_args();
    let compile = |cpu: Cpu| traced.compile(Compile::new(cpu).like(args.clone()));
    Ok(Loaded {
        compiled: compile(Cpu::new())?,
        direct: compile(Cpu::new().winograd(false))?,
        eager,
        args,
    })
}

/// Loads a model from one tensor to one tensor.
macro_rules! from_image {
    ($model:expr, $folder:expr, $x:expr) => {{
        let (mut model, x) = ($model, $x);
        if !model.state_dict().is_empty() {
            weights::load(&mut model, $folder.join("model.safetensors"))?;
        }
        model.eval();
        nn::set_requires_grad(&mut model, false)?;
        let traced = symbolic_trace(&model)?;
        let input = x.clone();
        loaded(traced, Box::new(move || model.forward(&input)), &x)
    }};
}

fn gpt2(folder: &Path, inputs: &Checkpoint, with_cache: bool) -> Result<Loaded> {
    let config = r#"{"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768,
        "n_layer": 12, "n_head": 12}"#;
    let checkpoint = Checkpoint::open(folder.join("model.safetensors"))?;
    let model = GPT2LMHeadModel::load(&Config::from_json(config)?, &checkpoint)?;
    let mut caches = model.caches(1)?;
    if with_cache {
        for (i, cache) in caches.iter_mut().enumerate() {
            let tensor = |kind: &str| inputs.tensor(&format!("{kind}{i}"));
            let (k, v) = (tensor("k")?, tensor("v")?);
            *cache = Cache { k, v };
        }
    }
    let x = inputs.tensor("x")?;
    let traced = model.trace()?;
    let args = (&x, caches.clone()).into_args();
    let eager = move || Ok(model.forward(&x, caches.clone())?.0);
    loaded(traced, Box::new(eager), args)
}

fn load(folder: &Path) -> Result<Loaded> {
    let inputs = Checkpoint::open(folder.join("inputs.safetensors"))?;
    let x = inputs.tensor("x")?;
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("resnet18") => from_image!(resnet18(1000)?, folder, x),
        Some("resnet50") => from_image!(resnet50(1000)?, folder, x),
        Some("mobilenet_v2") => from_image!(mobilenet_v2(1000)?, folder, x),
        Some("vit_b_16") => from_image!(vit_b_16(224, 1000)?, folder, x),
        Some("convnext_tiny") => from_image!(convnext_tiny(1000)?, folder, x),
        Some("chain") => from_image!(
            Chain {
                tag: Tag::default()
            },
            folder,
            x
        ),
        Some("gpt2") => gpt2(folder, &inputs, false),
        Some("gpt2_token") => gpt2(folder, &inputs, true),
        name => Err(Error::msg(format_args!("no model is named {name:?}"))),
    }
}

impl Loaded {
    /// The result of a run; the first one where there are several.
    fn run(&self, engine: &str) -> Result<Tensor> {
        let run = |gm: &GraphModule| {
            let mut result: Value = gm.forward(self.args.clone())?;
            if let Value::Tuple(items) | Value::List(items) = &result {
                result = items.first().cloned().unwrap_or_default();
            }
            Tensor::from_value(result)
        };
        match engine {
            "eager" => (self.eager)(),
            "compiled" => run(&self.compiled),
            "direct" => run(&self.direct),
            _ => Err(Error::msg(format_args!("no engine is named {engine}"))),
        }
    }
}

fn answer(line: &str, loaded: &mut Option<Loaded>) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let model = || Error::msg("no model is loaded");
    Ok(match words[..] {
        ["load", folder] => {
            *loaded = None;
            *loaded = Some(load(Path::new(folder))?);
            "loaded".into()
        }
        ["profile", file] => {
            let loaded = loaded.as_ref().ok_or_else(model)?;
            let profile = loaded.compiled.profile(5, loaded.args.clone())?;
            std::fs::write(file, profile.to_string()).map_err(Error::other)?;
            "written".into()
        }
        _ => {
            let loaded = loaded.as_ref().ok_or_else(model)?;
            answer_of_engine(&words, |engine| loaded.run(engine))?
        }
    })
}

fn main() {
    let mut loaded = None;
    answer_each(|line| fx_nn::no_grad(|| answer(line, &mut loaded)));
}
