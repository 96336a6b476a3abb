//! Files whose sizes, places and turns only a run knows: `cases/*.onnx`, each with ONNX Runtime's values for sets of
//! inputs (`cases.py` makes both). Every file runs as it was loaded, compiled, and written back.
//!
//! Invariant: a file without values fails, and so does one that is refused without its line in `cases/refused.txt`, or has
//! a line and is right. `UPDATE_CASES=1` writes these lines again.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

#[path = "../examples/support/written_back.rs"]
mod written_back;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::{Load, OnnxExt as _};
use serde_json::Value as Json;
use written_back::written_back;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn dtype(name: &str) -> Result<DType> {
    Ok(match name {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "int64" => DType::I64,
        "int32" => DType::I32,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        other => return Err(Error::msg(format_args!("a case of {other}"))),
    })
}

/// A recorded tensor.
fn tensor(of: &Json) -> Result<Tensor> {
    let wrong = || Error::msg("a recorded tensor is incomplete");
    let list = |name: &str| of[name].as_array().ok_or_else(wrong);
    let sizes = list("shape")?.iter().map(|size| size.as_u64());
    let shape: Vec<usize> = sizes
        .map(|size| size.map(|size| size as usize).ok_or_else(wrong))
        .collect::<Result<_>>()?;
    let number = |value: &Json| match value {
        Json::Bool(value) => Ok(f64::from(u8::from(*value))),
        Json::String(text) => text.parse().map_err(Error::other),
        value => value.as_f64().ok_or_else(wrong),
    };
    let values = list("values")?.iter().map(number);
    let values: Vec<f64> = values.collect::<Result<_>>()?;
    let x = Tensor::from_vec(values, shape)?;
    match dtype(of["dtype"].as_str().ok_or_else(wrong)?)? {
        DType::Bool => x.ne(0),
        dtype => x.to_dtype(dtype),
    }
}

/// A set of inputs, with what ONNX Runtime gives for it.
struct Set {
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<(String, Tensor)>,
}

impl Set {
    fn of(json: &Json) -> Result<Set> {
        let tensors = |name: &str| -> Result<Vec<(String, Tensor)>> {
            let all = json[name].as_object();
            let all = all.ok_or_else(|| Error::msg("a recorded set is incomplete"))?;
            all.iter()
                .map(|(name, of)| Ok((name.clone(), tensor(of)?)))
                .collect()
        };
        Ok(Set {
            inputs: tensors("inputs")?,
            outputs: tensors("outputs")?,
        })
    }

    /// Runs a module; what differs is an error.
    fn check(&self, gm: &GraphModule, outputs: &[String]) -> Result<()> {
        let args = gm.graph().placeholders().map(|node| {
            let name = node.target().to_string();
            let given = self.inputs.iter().find(|(of, _)| *of == name);
            given
                .map(|(_, x)| Value::object(x.clone()))
                .ok_or_else(|| Error::msg(format_args!("no recorded input `{name}`")))
        });
        let result: Value = gm.forward(CallArgs {
            args: args.collect::<Result<_>>()?,
            kwargs: Vec::new(),
        })?;
        let given = match &result {
            Value::Tuple(items) => items.to_vec(),
            one => vec![one.clone()],
        };
        for (name, found) in outputs.iter().zip(given) {
            let found = Tensor::from_value(found)?;
            let wanted = self.outputs.iter().find(|(of, _)| of == name);
            let Some((_, wanted)) = wanted else {
                return Err(Error::msg(format_args!("no recorded output `{name}`")));
            };
            let (a, b) = (found.dims()?, wanted.dims()?);
            if a != b || found.dtype()? != wanted.dtype()? {
                return Err(Error::msg(format_args!(
                    "WRONG: `{name}` is {} {a:?}, and {} {b:?} was expected",
                    found.dtype()?,
                    wanted.dtype()?
                )));
            }
            if !fx_nn::allclose(&found, wanted, 1e-4, 1e-5)?.close {
                return Err(Error::msg(format_args!(
                    "WRONG: `{name}` is {:?}, and {:?} was expected",
                    found.to_vec()?,
                    wanted.to_vec()?
                )));
            }
        }
        Ok(())
    }
}

const ROUTES: [&str; 3] = ["loaded", "compiled", "written"];

/// Runs a file by every route.
fn routes(path: &Path, sets: &[Set]) -> Result<[Result<()>; 3]> {
    let bytes = std::fs::read(path).map_err(Error::other)?;
    let read = match Load::new().from_bytes(bytes) {
        Ok(read) => read,
        Err(error) => {
            let again = || Err(Error::msg(&error));
            return Ok([again(), again(), again()]);
        }
    };
    let (gm, outputs) = (&read.module, &read.report.outputs);
    let each = |gm: &GraphModule| sets.iter().try_for_each(|set| set.check(gm, outputs));
    let compiled = || each(&gm.compile(Compile::new(fx_nn::cpu::Cpu::new()))?);
    let written = || -> Result<()> {
        let (bytes, _) = gm.to_onnx_bytes(&written_back(&read)?)?;
        each(&Load::new().from_bytes(bytes)?.module)
    };
    Ok([each(gm), compiled(), written()])
}

/// The kept reason of a refusal: its first line, without places.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    text.chars().take(200).collect()
}

#[test]
fn every_case_gives_what_onnx_runtime_gives() -> Result<()> {
    let text = std::fs::read_to_string(folder().join("expected.json")).map_err(Error::other)?;
    let expected: Json = serde_json::from_str(&text).map_err(Error::other)?;
    let files = std::fs::read_dir(folder()).map_err(Error::other)?;
    let paths: BTreeMap<String, PathBuf> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "onnx"))
        .map(|path| {
            let name = path.file_stem().unwrap_or_default();
            (name.to_string_lossy().into_owned(), path.clone())
        })
        .collect();
    let only = std::env::var("FX_CASES").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let mut refused = String::new();
    let mut counts = [0usize; 3];
    for (name, path) in &paths {
        if !only.is_empty() && !only.contains(&name.as_str()) {
            continue;
        }
        let sets = expected[name].as_array().filter(|sets| !sets.is_empty());
        let sets = sets.unwrap_or_else(|| panic!("`{name}` has no recorded values"));
        let sets = sets.iter().map(Set::of).collect::<Result<Vec<Set>>>()?;
        let results = routes(path, &sets)?;
        let mark = |result: &Result<()>| if result.is_ok() { "yes" } else { "no" };
        let marks = results.each_ref().map(mark);
        println!("{name:32} {:4} {:4} {:4}", marks[0], marks[1], marks[2]);
        let mut last = String::new();
        for (at, result) in results.iter().enumerate() {
            match result {
                Ok(()) => counts[at] += 1,
                Err(error) => {
                    let why = reason(error);
                    if why != last {
                        println!("    {}: {error}", ROUTES[at]);
                        writeln!(refused, "{name} {}: {why}", ROUTES[at]).map_err(Error::other)?;
                    }
                    last = why;
                }
            }
        }
    }
    println!(
        "cases: kept {} loaded {} compiled {} written {}",
        paths.len(),
        counts[0],
        counts[1],
        counts[2]
    );
    if !only.is_empty() {
        return Ok(());
    }
    let path = folder().join("refused.txt");
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(&path, &refused).map_err(Error::other)?;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        refused, kept,
        "UPDATE_CASES=1 writes cases/refused.txt again"
    );
    Ok(())
}
