//! Small programs of torch.export with PyTorch's results at two sizes (`make.py --small` writes both).

use std::path::PathBuf;

use fx_nn::cpu::Cpu;
use fx_nn::graph_module::Folder;
use fx_nn::ir::Op;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_torch::{Hierarchy, Loader};

use crate::support::{arrays, by_position, of_kind, off};

pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn loaded(name: &str, call: impl Fn(Vec<Tensor>) -> CallArgs + Copy) -> Result<GraphModule> {
    let gm = fx_torch::load(file(&format!("{name}.pt2")))?;
    check(&gm, name, call)?;
    Ok(gm)
}

/// A program as read, compiled, saved and loaded, at both sizes.
pub fn check(
    gm: &GraphModule,
    name: &str,
    call: impl Fn(Vec<Tensor>) -> CallArgs + Copy,
) -> Result<()> {
    let first = arrays(&file(&format!("{name}_0.npz")))?;
    let like = Compile::new(Cpu::new()).like(call(of_kind(&first, "in_")));
    let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
    for (way, gm) in [
        ("read", gm),
        ("compiled", &gm.compile(like)?),
        ("saved", &again),
    ] {
        for at in 0..2 {
            let error = off(gm, &file(&format!("{name}_{at}.npz")), call)?;
            assert!(
                error.is_equal(),
                "{name} {way} at {at}: off by {:e}\n{}",
                error.most,
                gm.graph()
            );
        }
    }
    Ok(())
}

#[test]
fn what_is_written_through_a_view_shows_in_its_base() -> Result<()> {
    loaded("written", by_position)?;
    Ok(())
}

/// Complex numbers, places by masks, windows, boxes and regions of images.
#[test]
fn compositions_and_leaves_are_what_pytorch_gives() -> Result<()> {
    loaded("mixed", by_position)?;
    Ok(())
}

#[test]
fn recurrent_layers_are_calls() -> Result<()> {
    let gm = loaded("recurrent", by_position)?;
    assert!(gm.graph().to_string().contains("lstm"));
    Ok(())
}

#[test]
fn tied_weights_are_one_tensor() -> Result<()> {
    let gm = loaded("tied", by_position)?;
    let names: Vec<String> = gm.named_parameters().into_keys().collect();
    let of = |name: &str| names.iter().filter(|known| **known == name).count();
    assert_eq!(of("emb.weight") + of("out.weight"), 1, "{names:?}");
    Ok(())
}

/// Arguments and results are the structures of PyTorch's `forward`, by name.
#[test]
fn structures_and_keywords_are_those_of_forward() -> Result<()> {
    let call = |inputs: Vec<Tensor>| {
        let mut inputs = inputs.into_iter().map(Value::object);
        let mut next = || inputs.next().unwrap_or_default();
        let (x, a, b, scale) = (next(), next(), next(), next());
        CallArgs {
            args: vec![x, Value::Tuple(vec![a, b].into())],
            kwargs: vec![(
                "scale".into(),
                Value::of(
                    [("a".to_string(), scale)]
                        .into_iter()
                        .collect::<IndexMap<_, _>>(),
                ),
            )],
        }
    };
    loaded("named", call)?;
    let gm = Loader::new()
        .hierarchy(Hierarchy::Flat)
        .load(file("named.pt2"))?;
    let conv = gm.graph().nodes().find(|node| node.name() == "conv2d");
    let conv = conv.ok_or_else(|| Error::msg("the graph has no convolution"))?;
    assert!(
        conv.location()
            .is_some_and(|at| at.to_string().contains(".py:"))
    );
    assert_eq!(
        conv.module_stack().next().map(|scope| &*scope.path),
        Some("conv")
    );
    Ok(())
}

#[test]
fn a_file_says_what_it_needs() -> Result<()> {
    let support = fx_torch::support(file("named.pt2"))?;
    assert!(support.missing.is_empty(), "{support}");
    assert!(
        support
            .operators
            .contains_key("torch.ops.aten.conv2d.default")
    );
    Ok(())
}

/// A checkpoint of the same layers loads from a program's weights.
#[test]
fn a_program_is_a_checkpoint() -> Result<()> {
    let mut layer = nn::Linear::new(4, 2)?;
    let checkpoint = fx_nn::weights::Checkpoint::open(file("named.pt2"))?;
    checkpoint.prefix("fc.").load_partial(&mut layer)?;
    let gm = fx_torch::load(file("named.pt2"))?;
    let weight = Tensor::from_value(gm.attributes().tensor("fc.weight")?.clone())?;
    assert_eq!(layer.weight.to_vec()?, weight.to_vec()?);
    Ok(())
}

/// Modules of `torch.nn` are layers at their paths, also one that is called twice.
#[test]
fn modules_of_torch_nn_are_layers_at_their_paths() -> Result<()> {
    let gm = loaded("nested", by_position)?;
    let called = |path: &str| {
        let nodes = gm.graph().nodes();
        nodes.filter(|node| node.target() == path).count()
    };
    for path in ["stack.blocks.0.norm", "stack.blocks.1.act", "head"] {
        assert_eq!(called(path), 1, "{path}\n{}", gm.graph());
    }
    assert_eq!(called("shared.up"), 2);
    let layer: &dyn std::any::Any = gm.attributes().module("shared.up")?;
    assert!(layer.is::<nn::Linear>());
    for (name, layer) in [
        ("recurrent", "lstm"),
        ("recurrent", "gru"),
        ("tied", "attn"),
        ("named", "bn"),
    ] {
        let gm = fx_torch::load(file(&format!("{name}.pt2")))?;
        let is_called = gm.graph().nodes().any(|node| node.target() == layer);
        assert!(is_called, "{name} {layer}\n{}", gm.graph());
    }
    Ok(())
}

/// Classes are graph modules on request; a crate has a struct with a `forward` for each, and equal ones share it.
#[test]
fn classes_are_graph_modules_and_structs_on_request() -> Result<()> {
    let flat = fx_torch::load(file("nested.pt2"))?;
    let loader = Loader::new().hierarchy(Hierarchy::Modules);
    let mut gm = loader.load(file("nested.pt2"))?;
    for at in 0..2 {
        let error = off(&gm, &file(&format!("nested_{at}.npz")), by_position)?;
        assert!(error.is_equal(), "at {at}: off by {:e}", error.most);
    }
    let modules = gm.named_modules();
    for path in ["stack", "stack.blocks.0", "stack.blocks.1", "shared"] {
        assert!(modules.contains_key(path), "{path}: {:?}", modules.keys());
    }
    // The size that the first block computes is read by the others: it is a result of it.
    let sorted = |gm: &GraphModule| {
        let mut names: Vec<String> = gm.state_dict().into_keys().collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&gm), sorted(&flat));
    let source = Folder::new("Nested").source(&gm)?;
    assert_eq!(source.matches("pub struct Block ").count(), 1, "{source}");
    assert!(source.contains("self.blocks.1.forward("), "{source}");
    // Without layers the graph has the functions alone.
    let plain = Loader::new()
        .hierarchy(Hierarchy::Flat)
        .load(file("nested.pt2"))?;
    assert!(
        plain
            .graph()
            .nodes()
            .all(|node| !matches!(node.op(), Op::CallModule(_)))
    );
    // A class is replaced by its path.
    let x = Tensor::ones((2, 3, 6))?;
    let scale = Tensor::ones(6)?;
    let before: Tensor = gm.forward((&x, &scale))?;
    let surgery = gm.replace_modules("shared", |_, old: &GraphModule| Ok(old.clone()))?;
    assert_eq!(surgery.replaced.len(), 1);
    let after: Tensor = gm.forward((&x, &scale))?;
    assert_eq!(before.to_vec()?, after.to_vec()?);
    Ok(())
}

/// Functions by their other names, linear algebra as it is and as PyTorch takes it apart, spectra, losses.
#[test]
fn functions_are_what_pytorch_gives() -> Result<()> {
    for name in [
        "aliases",
        "factors",
        "hermitian",
        "signals",
        "special",
        "solved",
        "solved.core",
        "spectra",
        "vectors",
        "more_losses",
    ] {
        loaded(&format!("functions/f_{name}"), by_position)?;
    }
    Ok(())
}
