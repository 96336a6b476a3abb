//! Runs an ONNX file as `tests/real_files.py` prepares it: a folder with `model.onnx` and a folder for each set of inputs,
//! `0`, `1` and so on, which has a tensor a file: `in_0.pb`, and ONNX Runtime's `out_0.pb` beside `out_0.tol`, how far it may be
//! off. The module is run as loaded, compiled, saved and loaded, and written back (`written.onnx` stays there); a line says
//! what came of each: `loaded right`, `compiled wrong: ..`, `written refused: ..`.
#![allow(clippy::print_stdout, reason = "an example prints")]

#[path = "support/tensor_files.rs"]
mod tensor_files;
#[path = "support/written_back.rs"]
mod written_back;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::proto::{ModelProto, TensorProto};
use fx_onnx::{Load, OnnxExt as _};
use prost::Message as _;
use tensor_files::tensor_files;
use written_back::written_back;

/// A tensor of a file, by its name, and how far it may be off.
struct Recorded {
    name: String,
    tensor: Tensor,
    tolerance: f64,
}

/// The tensors of a kind in a folder.
fn recorded(folder: &Path, kind: &str) -> Result<Vec<Recorded>> {
    let files = tensor_files(folder, kind).into_iter().enumerate();
    let each = files.map(|(at, bytes)| {
        let proto = TensorProto::decode(&*bytes).map_err(Error::other)?;
        let tolerance = std::fs::read_to_string(folder.join(format!("{kind}_{at}.tol")));
        Ok(Recorded {
            name: proto.name.clone(),
            tensor: fx_onnx::tensor(&proto)?,
            tolerance: tolerance
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0.0),
        })
    });
    each.collect()
}

struct Set {
    inputs: Vec<Recorded>,
    outputs: Vec<Recorded>,
}

/// What is wrong with a result, if anything.
fn difference(found: &Tensor, expected: &Recorded) -> Result<Option<String>> {
    let Recorded {
        name,
        tensor,
        tolerance,
    } = expected;
    if found.dims()? != tensor.dims()? || found.dtype()? != tensor.dtype()? {
        return Ok(Some(format!(
            "`{name}` is {} {:?}, and {} {:?} is expected",
            found.dtype()?,
            found.dims()?,
            tensor.dtype()?,
            tensor.dims()?
        )));
    }
    let (a, b): (Vec<f64>, Vec<f64>) = (found.to_vec()?, tensor.to_vec()?);
    let off = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| a != b && !(a.is_nan() && b.is_nan()));
    let most = off
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |most: f64, off| match off.is_nan() {
            true => f64::INFINITY,
            false => most.max(off),
        });
    Ok((most > *tolerance)
        .then(|| format!("`{name}` is off by {most:.3e}, and {tolerance:.3e} is allowed")))
}

fn run(gm: &GraphModule, set: &Set) -> Result<Option<String>> {
    let args = gm.graph().placeholders().map(|node| {
        let name = node.target().to_string();
        let given = set.inputs.iter().find(|input| input.name == name);
        let missing = || Error::msg(format_args!("no recorded input is called `{name}`"));
        given
            .map(|input| Value::object(input.tensor.clone()))
            .ok_or_else(missing)
    });
    let result: Value = gm.forward(CallArgs {
        args: args.collect::<Result<_>>()?,
        kwargs: Vec::new(),
    })?;
    let given = match &result {
        Value::Tuple(items) | Value::List(items) => items.to_vec(),
        one => vec![one.clone()],
    };
    if given.len() != set.outputs.len() {
        return Ok(Some(format!(
            "{} results, and {} are expected",
            given.len(),
            set.outputs.len()
        )));
    }
    for (found, expected) in given.into_iter().zip(&set.outputs) {
        let Some(found) = found.downcast_ref::<Tensor>() else {
            return Ok(Some(format!("`{}` is no tensor", expected.name)));
        };
        if let Some(wrong) = difference(found, expected)? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// The module written as ONNX, under the names of the file, and read again.
fn written(gm: &GraphModule, outputs: &[String], path: &Path) -> Result<GraphModule> {
    gm.to_onnx(path, &written_back(gm, outputs)?)?;
    Ok(Load::new().load(path)?.module)
}

/// A way to run a module.
type Way<'a> = (&'static str, Box<dyn Fn() -> Result<GraphModule> + 'a>);

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_string()));
    let model = folder.join("model.onnx");
    let mut sets = Vec::new();
    while folder.join(sets.len().to_string()).exists() {
        let set = folder.join(sets.len().to_string());
        sets.push(Set {
            inputs: recorded(&set, "in")?,
            outputs: recorded(&set, "out")?,
        });
    }
    let outputs: Vec<String> = sets
        .first()
        .map(|set| {
            set.outputs
                .iter()
                .map(|output| output.name.clone())
                .collect()
        })
        .unwrap_or_default();
    let bytes = std::fs::read(&model).map_err(Error::other)?;
    let file = ModelProto::decode(&*bytes).map_err(Error::other)?;
    println!("nodes {}", file.graph.unwrap_or_default().node.len());
    drop(bytes);
    let read = catch_unwind(|| Load::new().load(&model).map(|read| read.module));
    let loaded = match read {
        Err(_) => {
            println!("loaded panic");
            return Ok(());
        }
        Ok(Err(error)) => {
            println!("loaded refused: {}", error.to_string().replace('\n', " "));
            return Ok(());
        }
        Ok(Ok(gm)) => gm,
    };
    let ways: [Way<'_>; 4] = [
        ("loaded", Box::new(|| Ok(loaded.clone()))),
        (
            "compiled",
            Box::new(|| loaded.compile(Compile::new(Cpu::new()))),
        ),
        (
            "saved",
            Box::new(|| {
                let path = folder.join("saved.fx");
                loaded.save(&path)?;
                GraphModule::load(&path)
            }),
        ),
        (
            "written",
            Box::new(|| written(&loaded, &outputs, &folder.join("written.onnx"))),
        ),
    ];
    for (name, make) in &ways {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let gm = make()?;
            for (index, set) in sets.iter().enumerate() {
                if let Some(wrong) = fx_nn::no_grad(|| run(&gm, set))? {
                    return Ok(Some(format!("set {index}: {wrong}")));
                }
            }
            Ok::<_, Error>(None)
        }));
        match outcome {
            Err(_) => println!("{name} panic"),
            Ok(Err(error)) => println!("{name} refused: {}", error.to_string().replace('\n', " ")),
            Ok(Ok(Some(wrong))) => println!("{name} wrong: {wrong}"),
            Ok(Ok(None)) => println!("{name} right"),
        }
    }
    Ok(())
}
