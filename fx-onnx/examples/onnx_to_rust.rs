//! ONNX files as Rust: `cargo run --release -p fx-onnx --example onnx_to_rust -- FILE..` writes each as a crate, builds it
//! against this workspace, runs it on random inputs, and compares the results with rten's on the file.
//! `python fx-onnx/tests/judge.py rust DIR` has torch write a ResNet-18 and a BERT first. `--keep` keeps the crates.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fx_nn::graph_module::Folder;
use fx_nn::ir::ValueMeta;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use support::rten;

/// A name of a type: letters and digits of a file's name.
fn type_name(path: &Path) -> String {
    let stem = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let parts = stem.split(|c: char| !c.is_ascii_alphanumeric());
    let upper =
        parts.map(|part| part[..part.len().min(1)].to_uppercase() + part.get(1..).unwrap_or(""));
    upper.collect()
}

/// Inputs of a graph module, random where they are floats; a size with a name is 2.
fn inputs(gm: &GraphModule) -> Result<Vec<Tensor>> {
    let mut all = Vec::new();
    for node in gm.graph().placeholders() {
        let meta = node.meta::<ValueMeta>().and_then(ValueMeta::tensor);
        let meta = meta.ok_or_else(|| Error::msg(format_args!("what is {}?", node.name())))?;
        let shape = meta.shape.iter().map(|dim| dim.as_known().unwrap_or(2));
        let shape: Vec<usize> = shape.collect();
        all.push(match meta.dtype {
            Some(DType::I64) => {
                let count: usize = shape.iter().product();
                Tensor::from_vec((0..count as i64).map(|n| n * 7 % 53).collect(), shape)?
            }
            _ => Tensor::randn(shape)?,
        });
    }
    Ok(all)
}

/// A program of the generated crate, as a user would add one: it reads inputs and writes results.
fn program(package: &str, name: &str, inputs: &[Tensor]) -> Result<String> {
    let (mut read, mut names) = (String::new(), Vec::new());
    for (at, x) in inputs.iter().enumerate() {
        let (ty, width) = match x.dtype()? {
            DType::I64 => ("i64", 8),
            _ => ("f32", 4),
        };
        let _ = writeln!(
            read,
            "    let bytes = std::fs::read(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/in{at}\")).map_err(Error::other)?;\n    let x{at} = bytes.as_chunks::<{width}>().0.iter().map(|b| {ty}::from_le_bytes(*b)).collect();\n    let x{at} = Tensor::from_vec(x{at}, vec!{:?})?;",
            x.dims()?
        );
        names.push(format!("&x{at}"));
    }
    Ok(format!(
        "use fx_nn::prelude::*;\n\nfn main() -> Result<()> {{\n    let folder = env!(\"CARGO_MANIFEST_DIR\");\n    let module = {package}::{name}::load(format!(\"{{folder}}/weights.safetensors\"))?;\n{read}    let y: Tensor = module.forward({})?;\n    let bytes: Vec<u8> = y.to_vec()?.iter().flat_map(|v| v.to_le_bytes()).collect();\n    std::fs::write(format!(\"{{folder}}/out\"), bytes).map_err(Error::other)\n}}\n",
        names.join(", ")
    ))
}

/// The largest difference between the crate that is made of a file, and rten on the file.
fn compared(path: &Path, target: &Path, keep: bool) -> Result<f64> {
    let name = type_name(path);
    let module = fx_onnx::load(path)?.module;
    let folder = target.join(format!("fx_onnx_{name}_{}", std::process::id()));
    Folder::new(&name)
        .dependencies_by_path(true)
        .write(&module, &folder)?;
    let source = std::fs::read_to_string(folder.join("src/lib.rs")).map_err(Error::other)?;
    println!("{name}: src/lib.rs has {} lines", source.lines().count());
    for line in source
        .lines()
        .filter(|line| line.contains("pub struct"))
        .take(12)
    {
        println!("    {line}");
    }
    let inputs = inputs(&module)?;
    for (at, x) in inputs.iter().enumerate() {
        let bytes = x.to_data()?;
        std::fs::write(folder.join(format!("in{at}")), bytes.bytes()?).map_err(Error::other)?;
    }
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).map_err(Error::other)?;
    let package = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    let package = package.unwrap_or_default().trim_matches('"');
    std::fs::create_dir(folder.join("examples")).map_err(Error::other)?;
    std::fs::write(
        folder.join("examples/run.rs"),
        program(package, &name, &inputs)?,
    )
    .map_err(Error::other)?;
    // The versions that this workspace locks, all available offline.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    std::fs::copy(lock, folder.join("Cargo.lock")).map_err(Error::other)?;
    let output = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--release",
            "--offline",
            "--example",
            "run",
        ])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .map_err(Error::other)?;
    if !output.status.success() {
        return Err(Error::msg(String::from_utf8_lossy(&output.stderr)));
    }
    let out = std::fs::read(folder.join("out")).map_err(Error::other)?;
    if !keep {
        std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    }
    let found = out
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| f64::from_le_bytes(*b));
    let model = rten::load(std::fs::read(path).map_err(Error::other)?)?;
    let expected = rten::run(&model, &inputs)?;
    let expected = expected[0].to_vec()?;
    if expected.len() * 8 != out.len() {
        return Err(Error::msg("the results differ in size"));
    }
    Ok(found
        .zip(&expected)
        .fold(0f64, |most, (a, b)| most.max((a - b).abs())))
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let args: Vec<String> = std::env::args().skip(1).collect();
    let keep = args.iter().any(|arg| arg == "--keep");
    let mut most = 0f64;
    for path in args.iter().filter(|arg| *arg != "--keep") {
        let error = compared(Path::new(path), &target, keep)?;
        println!("{path}: max_abs_err_generated_vs_onnx: {error:.1e}");
        most = most.max(error);
    }
    println!("max_abs_err_generated_vs_onnx: {most:.1e}");
    Ok(())
}
