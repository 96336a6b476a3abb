//! Seven models as crates without `std`, for `.ci/static`: each with inputs, and with what its compiled module gives for them,
//! as functions of a crate `cases` that any program can call.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fx_nn::cpu::{Cpu, Target, ToCrate};
use fx_nn::models::bert::{self, Bert};
use fx_nn::models::gpt2::{self, Gpt2};
use fx_nn::models::lstm_classifier::LstmClassifier;
use fx_nn::models::mlp::Mlp;
use fx_nn::models::mobilenet::mobilenet_v2;
use fx_nn::models::resnet::resnet18;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::{CallArgs, FromValue};
use fx_nn::value::Value;

/// The models by name. The first two are for microcontrollers.
const MODELS: [&str; 7] = [
    "mlp",
    "keywords",
    "mobilenet_v2",
    "resnet18",
    "gpt2",
    "bert",
    "lstm",
];

/// A network that finds keywords in 49 frames of 10 coefficients: depthwise separable convolutions, as in MLPerf Tiny.
fn keywords() -> Result<nn::Sequential> {
    let conv = |inputs: usize, kernel: (usize, usize), groups: usize| {
        Ok::<_, Error>(nn::Conv2d::grouped(inputs, 64, kernel, groups)?.bias(false))
    };
    let mut net = nn::Sequential::new()
        .push(conv(1, (10, 4), 1)?.stride(2).padding((5, 1)))
        .push(nn::BatchNorm2d::new(64)?)
        .push(nn::ReLU::new());
    for _ in 0..4 {
        net = net
            .push(conv(64, (3, 3), 64)?.padding(1))
            .push(nn::BatchNorm2d::new(64)?)
            .push(nn::ReLU::new())
            .push(conv(64, (1, 1), 1)?)
            .push(nn::BatchNorm2d::new(64)?)
            .push(nn::ReLU::new());
    }
    Ok(net
        .push(nn::AdaptiveAvgPool2d::new(1))
        .push(nn::Flatten::new())
        .push(nn::Linear::new(64, 12)?)
        .push(nn::Softmax::new(-1)))
}

fn model(name: &str) -> Result<Box<dyn Module>> {
    Ok(match name {
        "mlp" => Box::new(Mlp::new(16, 32, 4)?),
        "keywords" => Box::new(keywords()?),
        "mobilenet_v2" => Box::new(mobilenet_v2(1000)?),
        "resnet18" => Box::new(resnet18(1000)?),
        "gpt2" => Box::new(Gpt2::new(&gpt2::Config {
            vocab_size: 256,
            block_size: 64,
            n_layer: 4,
            n_head: 4,
            n_embd: 64,
            dropout: 0.0,
        })?),
        "bert" => Box::new(Bert::new(&bert::Config {
            vocab_size: 256,
            max_positions: 64,
            length: 48,
            width: 64,
            heads: 4,
            intermediate: 128,
            layers: 3,
            labels: 5,
            dropout: 0.0,
        })?),
        _ => Box::new(LstmClassifier::new(256, 32, 48, 10)?),
    })
}

/// Has convolutions keep the size of what they are given, so that results depend on all of them.
fn enlarge(model: &dyn Module) -> Result<()> {
    for (_, value) in model.named_parameters() {
        if let Some(weight) = value.downcast_ref::<Tensor>()
            && weight.dims()?.len() == 4
        {
            // What a layer is made with, times the root of 6.
            weight.clone().copy_from(&(weight * 2.45)?)?;
        }
    }
    Ok(())
}

fn inputs(name: &str) -> Result<Vec<Tensor>> {
    let floats = |sizes: &[usize]| {
        let count = sizes.iter().product::<usize>();
        let floats = (0..count).map(|i| (i * 7 % 255) as f32 / 127.5 - 1.0);
        Tensor::from_vec(floats.collect(), sizes)
    };
    let tokens = |count: i64, most: i64| {
        let tokens: Vec<i64> = (0..count).map(|i| i * 37 % most).collect();
        Tensor::from_vec(tokens, (1, count as usize))
    };
    Ok(match name {
        "mlp" => vec![floats(&[1, 16])?],
        "keywords" => vec![floats(&[1, 1, 49, 10])?],
        "mobilenet_v2" | "resnet18" => vec![floats(&[1, 3, 224, 224])?],
        "bert" => vec![tokens(48, 256)?, Tensor::ones((1, 48))?, tokens(48, 2)?],
        _ => vec![tokens(48, 256)?],
    })
}

/// Writes the crate of a model, its numbers, and the function that runs it and compares.
fn write(folder: &Path, name: &str) -> Result<String> {
    fx_nn::manual_seed(0);
    let mut model = model(name)?;
    nn::set_requires_grad(&mut *model, false)?;
    enlarge(&*model)?;
    model.eval();
    let gm = symbolic_trace(&*model)?;
    let inputs = inputs(name)?;
    let args = || CallArgs {
        args: inputs.iter().map(|x| Value::of(x.clone())).collect(),
        kwargs: Vec::new(),
    };
    let made = gm.to_crate(Target::Static, args())?;
    made.write(folder.join(name), name)?;
    println!(
        "static.bytes/{name} weights {} arena {} steps {}",
        made.weight_bytes(),
        made.arena_bytes(),
        made.steps()
    );
    let fast = gm.compile(Compile::new(Cpu::new()).like(args()))?;
    let given: Value = fast.forward(args())?;
    let given = match &given {
        Value::Tuple(items) | Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    };
    // Inputs of indices are constants; floats are bytes of files.
    let text = made.source();
    let fields = text.lines().skip_while(|line| !line.starts_with("pub struct Inputs"));
    let fields = fields.skip(1).take_while(|line| *line != "}");
    let fields: Vec<&str> = fields
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next())
        .collect();
    let mut call = String::new();
    let mut statics = String::new();
    for (field, input) in fields.iter().zip(&inputs) {
        let flat = input.reshape(-1)?;
        match input.dtype()? {
            DType::I64 => {
                let all: Vec<i64> = flat.to_vec1()?;
                let _ = writeln!(call, "        {field}: &{all:?},");
            }
            _ => {
                let all: Vec<f32> = flat.to_vec1()?;
                let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
                let file = format!("{name}_{field}.bin");
                fs::write(folder.join("cases/src").join(&file), bytes).map_err(Error::other)?;
                let _ = writeln!(
                    statics,
                    "    static {}: &Aligned<[u8; {}]> = &Aligned(*include_bytes!(\"{file}\"));",
                    field.to_uppercase(),
                    4 * all.len()
                );
                let _ = writeln!(
                    call,
                    "        {field}: floats({}).first_chunk().expect(\"all of them\"),",
                    field.to_uppercase()
                );
            }
        }
    }
    let mut compared = String::new();
    for (at, value) in given.into_iter().enumerate() {
        let all: Vec<f32> = Tensor::from_value(value)?.reshape(-1)?.to_vec1()?;
        let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        let file = format!("{name}_given_{at}.bin");
        fs::write(folder.join("cases/src").join(&file), bytes).map_err(Error::other)?;
        let field = match text.contains("pub output_0:") {
            true => format!("output_{at}"),
            false => "output".to_string(),
        };
        let _ = writeln!(
            statics,
            "    static GIVEN_{at}: &Aligned<[u8; {}]> = &Aligned(*include_bytes!(\"{file}\"));",
            4 * all.len()
        );
        let _ = writeln!(compared, "    all.add(outputs.{field}, floats(GIVEN_{at}));");
    }
    let question = match text.contains("IndexError>") {
        true => ".expect(\"indices are in range\")",
        false => "",
    };
    Ok(format!(
        "/// How far `{name}` is from what the compiled module gives.\n\
         pub fn {name}(arena: &mut {name}::Arena) -> Apart {{\n{statics}    \
         let outputs = {name}::run(&{name}::Inputs {{\n{call}    }}, arena){question};\n    \
         let mut all = Apart::default();\n{compared}    all\n}}\n\n"
    ))
}

fn made(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("cases/src")).map_err(Error::other)?;
    let mut text = String::from(include_str!("cases.rs"));
    let mut manifest = String::from(
        "[package]\nname = \"cases\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n",
    );
    let _ = writeln!(manifest, "fx-static = {{ path = {:?} }}", concat!(env!("CARGO_MANIFEST_DIR"), "/../../fx-static"));
    for name in MODELS {
        let _ = writeln!(manifest, "{name} = {{ path = \"../{name}\" }}");
        text.push_str(&write(folder, name)?);
    }
    fs::write(folder.join("cases/Cargo.toml"), manifest).map_err(Error::other)?;
    fs::write(folder.join("cases/src/lib.rs"), text).map_err(Error::other)?;
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1);
    let folder = folder.ok_or_else(|| Error::msg("name a folder that is not there yet"))?;
    made(Path::new(&folder))
}
