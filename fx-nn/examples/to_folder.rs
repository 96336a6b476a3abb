//! ResNet-18 traced and written as a crate, which is built offline against this workspace, loads its weights, gives the
//! same numbers, and traces to the same graph.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::process::Command;

use fx_nn::graph_module::Folder;
use fx_nn::models::resnet::resnet18;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

/// A program of the generated crate, as a user would add one: it runs the crate's module beside the saved graph.
const COMPARE: &str = r#"
use fx_nn::prelude::*;

fn main() -> Result<()> {
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/weights.safetensors");
    let generated = res_net18::ResNet18::load(weights)?;
    let traced = GraphModule::load(weights)?;

    let x = Tensor::rand((1, 3, 224, 224))?;
    let expected: Tensor = traced.forward(&x)?;
    let closeness = fx_nn::allclose(&generated.forward(&x)?, &expected, 0.0, 0.0)?;
    println!("max_abs_err_generated_vs_traced: {}", closeness.max_abs);

    let again = symbolic_trace(&generated)?;
    println!("retraced_graph_equal: {}", again.graph().to_string() == traced.graph().to_string());
    Ok(())
}
"#;

fn main() -> Result<()> {
    let mut module = resnet18(1000)?;
    module.eval();
    nn::set_requires_grad(&mut module, false)?;
    let traced = symbolic_trace(&module)?;

    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let folder = target.join(format!("fx_example_res_net18_{}", std::process::id()));
    Folder::new("ResNet18")
        .dependencies_by_path(true)
        .write(&traced, &folder)?;
    let built = build_and_run(&folder, &target);
    std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    built
}

fn build_and_run(folder: &Path, target: &Path) -> Result<()> {
    let source = std::fs::read_to_string(folder.join("src/lib.rs")).map_err(Error::other)?;
    println!("src/lib.rs: {} lines, which end in", source.lines().count());
    let lines: Vec<&str> = source.lines().collect();
    println!("{}\n", lines[lines.len().saturating_sub(8)..].join("\n"));

    std::fs::create_dir(folder.join("examples")).map_err(Error::other)?;
    std::fs::write(folder.join("examples/compare.rs"), COMPARE).map_err(Error::other)?;
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
            "compare",
        ])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .map_err(Error::other)?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::msg(String::from_utf8_lossy(&output.stderr))),
    }
}
