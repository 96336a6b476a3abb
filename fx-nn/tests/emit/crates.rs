//! Crates that graph modules are written to: their files, fields and names, and what cannot be
//! written.

use std::path::{Path, PathBuf};

use super::*;

/// A folder that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("fx_emit_{name}_{}", std::process::id());
        Scratch(std::env::temp_dir().join(folder))
    }

    fn read(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.0.join(file)).map_err(Error::other)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::other)? {
        let name = entry.map_err(Error::other)?.file_name();
        found.push(name.to_string_lossy().into_owned());
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_model_becomes_a_crate() -> Result<()> {
    let mut module = resnet18(10)?;
    module.eval();
    let gm = symbolic_trace(&module)?;
    let scratch = Scratch::new("resnet");
    gm.to_folder(&scratch.0, "ResNet18")?;
    assert_eq!(
        files(&scratch.0)?,
        ["Cargo.toml", "README.md", "src", "weights.safetensors"]
    );
    let manifest = scratch.read("Cargo.toml")?;
    assert_snapshot!(manifest.replace(env!("CARGO_MANIFEST_DIR"), "FX_NN"), @r#"
    [package]
    name = "res_net18"
    version = "0.1.0"
    edition = "2024"
    publish = false

    [dependencies]
    fx-nn = { path = "FX_NN" }

    # It stands on its own, also inside of another workspace.
    [workspace]
    "#);
    let source = scratch.read("src/lib.rs")?;
    assert!(
        source.contains("pub struct BasicBlock {")
            && source.contains("self.layer2.0.downsample.1.forward(")
    );
    assert_eq!(source, Folder::new("ResNet18").source(&gm)?);

    // The weights are the saved form.
    let loaded = GraphModule::load(scratch.0.join("weights.safetensors"))?;
    let x = Tensor::rand((1, 3, 32, 32))?;
    let (found, expected): (Tensor, Tensor) = (loaded.forward(&x)?, gm.forward(&x)?);
    assert!(allclose(&found, &expected, 0.0, 0.0)?.close);

    // An existing crate stays unchanged.
    let again = gm.to_folder(&scratch.0, "ResNet18");
    assert!(again.is_err_and(|e| e.to_string().contains("exists and is not overwritten")));
    Ok(())
}

/// Names in paths that are not names in Rust.
#[test]
fn paths_that_are_no_names_become_fields_with_names() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule("0", nn::Linear::new(3, 3)?)?;
    gm.add_submodule("type", nn::Tanh::new())?;
    gm.add_submodule("a-b.self", nn::Tanh::new())?;
    let relu = node(&gm, "relu")?;
    let mut graph = gm.graph_mut();
    let mut last = relu;
    for path in ["0", "type", "a-b.self"] {
        let call = graph
            .inserting_after(last)?
            .call_module(path, (last,), ())?;
        graph
            .node_mut(last)?
            .replace_uses_with_filter(call, |user| user.id() != call)?;
        last = call;
    }
    drop(graph);
    gm.lint()?;
    let source = Folder::new("Odd").source(&gm)?;
    assert_snapshot!(source);
    Ok(())
}

#[test]
fn a_sequential_becomes_a_tuple_struct() -> Result<()> {
    let module = nn::Sequential::new()
        .push(nn::Linear::new(4, 4)?)
        .push(nn::ReLU::new());
    let gm = symbolic_trace(&module)?;
    let source = Folder::new("Net").source(&gm)?;
    assert_snapshot!(source);
    Ok(())
}

#[wrap]
fn of_this_test(x: &Tensor) -> Result<Tensor> {
    x * 2
}

#[test]
fn what_cannot_be_named_from_outside_is_refused_before_anything_is_written() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| of_this_test(x)?.relu()))?;
    let scratch = Scratch::new("refused");
    let text = gm
        .to_folder(&scratch.0, "Net")
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert_snapshot!(without_lines(text), @"
    what a crate cannot name from outside is used by 1 node:
      %of_this_test (fx-nn/tests/emit/crates.rs:_) calls `behaviour::emit::crates::of_this_test`: no library `behaviour` is known: if it is one, put `fx_nn::register_crate!();` into its lib.rs; otherwise move the item into a library, or trace through it
    ");
    assert!(!scratch.0.exists());
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    let error = gm.to_folder(&scratch.0, "not a name").err();
    assert_snapshot!(error.map(|e| e.to_string()).unwrap_or_default(), @"`not a name` is not a name for a module's type: write it as `ResNet18`");
    assert!(!scratch.0.exists());
    Ok(())
}

#[test]
fn a_module_is_taken_out_as_its_own_type() -> Result<()> {
    let mut gm = symbolic_trace(&Mlp::new(4, 8, 2)?)?;
    let wrong = gm.take_submodule::<nn::Tanh>("fc1");
    assert!(wrong.is_err_and(|e| e.to_string().contains("`fc1` is a `Linear`, not a `Tanh`")));
    gm.take_submodule::<nn::Linear>("fc1")?;
    assert!(gm.submodule("fc1").is_err());
    let error = gm.lint().err();
    assert_snapshot!(without_lines(error.map(|e| e.to_string()).unwrap_or_default()), @"while checking %fc1 (fx-nn/src/models/mlp.rs:_): no module at `fc1`; add it with `GraphModule::add_submodule`");
    Ok(())
}

/// A chain longer than any stack, in little time.
#[test]
fn a_long_chain_is_written() -> Result<()> {
    let mut graph = Graph::new();
    let mut at = graph.placeholder("x")?;
    for _ in 0..20_000 {
        at = graph.call_function(operator::neg, (at,), ())?;
    }
    graph.output(at)?;
    let gm = GraphModule::new(Attributes::default(), graph, "Chain")?;
    assert_eq!(gm.code().lines().count(), 20_003);
    Ok(())
}

/// The inner graph module's function.
#[trace]
fn both(x: &Tensor, by: Float) -> Result<(Tensor, Tensor)> {
    Ok((x.relu()?, (x * by)?))
}

/// A graph module that calls two others as they are.
fn of_graph_modules() -> Result<GraphModule> {
    let mut attributes = Attributes::default();
    let tanh = symbolic_trace(&nn::Sequential::new().push(nn::Tanh::new()))?;
    attributes
        .modules
        .insert("parts.act".into(), Box::new(tanh));
    let both = symbolic_trace(traced!(both))?;
    attributes
        .modules
        .insert("parts.both".into(), Box::new(both));
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let act = graph.call_module("parts.act", (x,), ())?;
    let pair = graph.call_module("parts.both", (act, 2.0), ())?;
    let kept = graph.call_module("parts.both", (act,), [("by", 3.0)])?;
    let first = graph.call_function(operator::getitem, (pair, 0), ())?;
    let second = graph.call_function(operator::getitem, (kept, 1), ())?;
    let sum = graph.call_function(operator::add, (first, second), ())?;
    graph.output(sum)?;
    GraphModule::new(attributes, graph, "Outer")
}

#[allow(dead_code, clippy::all, reason = "as it is generated")]
#[rustfmt::skip]
#[path = "graph_modules.rs"]
mod graph_modules;

/// Graph modules are fields, called with their results' types: the source compiles, runs and traces.
#[test]
fn graph_modules_in_a_crate_are_called() -> Result<()> {
    let gm = of_graph_modules()?;
    let source = Folder::new("Outer").source(&gm)?;
    assert_eq!(source, include_str!("graph_modules.rs"), "{source}");
    let module = graph_modules::Outer::take(&mut gm.clone())?;
    let x = Tensor::rand((2, 3))?;
    let expected: Tensor = gm.forward(&x)?;
    let again: Tensor = symbolic_trace(&module)?.forward(&x)?;
    assert!(allclose(&module.forward(&x)?, &expected, 0.0, 0.0)?.close);
    assert!(allclose(&again, &expected, 0.0, 0.0)?.close);
    Ok(())
}

#[test]
fn what_cannot_be_named_inside_of_a_graph_module_is_refused_too() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    gm.add_submodule(
        "inner",
        symbolic_trace(traced!(|x: &Tensor| of_this_test(x)))?,
    )?;
    let told = Folder::new("Net")
        .source(&gm)
        .unwrap_or_else(|e| e.to_string());
    assert_snapshot!(without_lines(told), @"
    what a crate cannot name from outside is used by 1 node:
      %of_this_test of the graph module `inner` (fx-nn/tests/emit/crates.rs:_) calls `behaviour::emit::crates::of_this_test`: no library `behaviour` is known: if it is one, put `fx_nn::register_crate!();` into its lib.rs; otherwise move the item into a library, or trace through it
    ");
    Ok(())
}

#[derive(Module)]
struct Weighted {
    w: Tensor,
}

#[trace]
impl Weighted {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x * (&self.w + 1.0)?
    }
}

/// Lazily folded constants cannot be in source; constants folded at once are tensors.
#[test]
fn constants_that_are_folded_lazily_are_refused() -> Result<()> {
    let gm = symbolic_trace(&Weighted {
        w: Tensor::ones(4)?,
    })?;
    let (mut lazy, mut eager) = (gm.clone(), gm);
    lazy.apply(&fx_nn::passes::FoldConstants::new().lazily())?;
    eager.apply(&fx_nn::passes::FoldConstants::new())?;
    let error = Folder::new("Lazy").source(&lazy).err();
    let error = error.map(|e| e.to_string()).unwrap_or_default();
    assert_snapshot!(without_lines(error), @"while writing a crate %_folded (fx-core/src/passes/fold_constants.rs:_): `_folded` has constants that are folded lazily, which source cannot call: fold with `FoldConstants::new()`, at once, in a graph module that is to be written");
    assert!(Folder::new("Eager").source(&eager).is_ok());
    Ok(())
}
