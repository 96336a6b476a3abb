//! Runs an ONNX file as `tests/real_files.py` prepares it: a folder with `model.onnx` and a folder for each set of inputs,
//! `0`, `1` and so on, which has a tensor a file: `in_0.pb`, and ONNX Runtime's `out_0.pb` beside `out_0.tol`, how far it may be
//! off. The module is run as loaded, compiled, saved and loaded, and written back (`written.onnx` stays there); a line says
//! what came of each: `loaded right`, `compiled wrong: ..`, `written refused: ..`; the last ones, `off0 1e-7 0e0`, how far
//! each result of a set is off at most.
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
use fx_onnx::{Import, Load, OnnxExt as _, Texts};
use prost::Message as _;
use tensor_files::tensor_files;
use written_back::written_back;

/// A tensor of a file, of numbers or of text, by its name, and how far it may be off.
struct Recorded {
    name: String,
    value: Value,
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
            value: match proto.data_type {
                8 => Value::object(fx_onnx::texts(&proto)?),
                _ => Value::object(fx_onnx::tensor(&proto)?),
            },
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

/// Dicts of scores as a row each.
fn of_dicts(rows: &[Value]) -> Result<Tensor> {
    let mut all = Vec::new();
    for row in rows {
        let Value::Dict(row) = row else {
            return Err(Error::msg("a list of dicts is expected"));
        };
        for score in row.values() {
            let Value::Float(score) = score else {
                return Err(Error::msg("a score is a number"));
            };
            all.push(*score as f32);
        }
    }
    let columns = all.len() / rows.len().max(1);
    Tensor::from_vec(all, (rows.len(), columns))
}

/// What is wrong with a result, if anything; the largest difference goes into `off`.
fn difference(found: &Value, expected: &Recorded, off: &mut f64) -> Result<Option<String>> {
    let Recorded {
        name,
        value,
        tolerance,
    } = expected;
    if let Some(texts) = value.downcast_ref::<Texts>() {
        let is_same = found.downcast_ref::<Texts>() == Some(texts);
        return Ok((!is_same).then(|| format!("`{name}` is {found:?}, and {texts:?} is expected")));
    }
    let scores;
    let (found, tensor) = match (found, value.downcast_ref::<Tensor>()) {
        (Value::List(rows), Some(tensor)) => {
            scores = of_dicts(rows)?;
            (&scores, tensor)
        }
        (found, Some(tensor)) => match found.downcast_ref::<Tensor>() {
            Some(found) => (found, tensor),
            None => return Ok(Some(format!("`{name}` is no tensor"))),
        },
        _ => return Err(Error::msg("a recorded value is no tensor")),
    };
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
    let differ = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| a != b && !(a.is_nan() && b.is_nan()));
    let most = differ
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |most: f64, off| match off.is_nan() {
            true => f64::INFINITY,
            false => most.max(off),
        });
    *off = off.max(most);
    Ok((most > *tolerance)
        .then(|| format!("`{name}` is off by {most:.3e}, and {tolerance:.3e} is allowed")))
}

/// Runs a module whose inputs have these names in the file.
fn run(
    gm: &GraphModule,
    inputs: &[String],
    set: &Set,
    off: &mut Vec<f64>,
) -> Result<Option<String>> {
    let args = inputs.iter().map(|name| {
        let given = set.inputs.iter().find(|input| input.name == *name);
        let missing = || Error::msg(format_args!("no recorded input is called `{name}`"));
        given.map(|input| input.value.clone()).ok_or_else(missing)
    });
    let result: Value = gm.forward(CallArgs {
        args: args.collect::<Result<_>>()?,
        kwargs: Vec::new(),
    })?;
    let given = match &result {
        Value::Tuple(items) => items.to_vec(),
        Value::List(items) if set.outputs.len() > 1 => items.to_vec(),
        one => vec![one.clone()],
    };
    if given.len() != set.outputs.len() {
        return Ok(Some(format!(
            "{} results, and {} are expected",
            given.len(),
            set.outputs.len()
        )));
    }
    off.resize(set.outputs.len(), 0.0);
    for ((found, expected), off) in given.into_iter().zip(&set.outputs).zip(off) {
        if let Some(wrong) = difference(&found, expected, off)? {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// What was read written as ONNX, under the names of the file, and read again.
fn written(read: &Import, path: &Path) -> Result<GraphModule> {
    read.module.to_onnx(path, &written_back(read)?)?;
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
    let bytes = std::fs::read(&model).map_err(Error::other)?;
    let file = ModelProto::decode(&*bytes).map_err(Error::other)?;
    println!("nodes {}", file.graph.unwrap_or_default().node.len());
    drop(bytes);
    let loaded = match catch_unwind(|| Load::new().load(&model)) {
        Err(_) => {
            println!("loaded panic");
            return Ok(());
        }
        Ok(Err(error)) => {
            println!("loaded refused: {}", error.to_string().replace('\n', " "));
            return Ok(());
        }
        Ok(Ok(read)) => read,
    };
    let gm = &loaded.module;
    let ways: [Way<'_>; 4] = [
        ("loaded", Box::new(|| Ok(gm.clone()))),
        (
            "compiled",
            Box::new(|| gm.compile(Compile::new(Cpu::new()))),
        ),
        (
            "saved",
            Box::new(|| {
                let path = folder.join("saved.fx");
                gm.save(&path)?;
                GraphModule::load(&path)
            }),
        ),
        (
            "written",
            Box::new(|| written(&loaded, &folder.join("written.onnx"))),
        ),
    ];
    let mut off = vec![Vec::new(); sets.len()];
    for (name, make) in &ways {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let gm = make()?;
            for (index, set) in sets.iter().enumerate() {
                if let Some(wrong) =
                    fx_nn::no_grad(|| run(&gm, &loaded.report.inputs, set, &mut off[index]))?
                {
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
    for (index, off) in off.iter().enumerate() {
        let off: Vec<String> = off.iter().map(|off| format!("{off:.3e}")).collect();
        println!("off{index} {}", off.join(" "));
    }
    Ok(())
}
