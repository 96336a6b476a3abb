//! `nest_modules`: calls of modules that were traced through become graph modules at their paths.

use fx_core::ir::SourceLocation;
use fx_core::prelude::*;
use fx_core::trace::placed;

use crate::support::modules::Scale;

#[derive(Module)]
struct Block {
    first: Scale,
    second: Scale,
}

#[trace]
impl Block {
    fn forward(&self, x: Float, plus: Float) -> Result<Float> {
        let h = self.first.forward(x)?;
        self.second.forward((h + plus)?)
    }
}

#[derive(Module)]
struct Outer {
    blocks: Vec<Block>,
}

#[trace]
impl Outer {
    fn forward(&self, x: Float, plus: Float) -> Result<Float> {
        let mut h = x;
        for block in &self.blocks {
            h = block.forward(h, plus)?;
        }
        h + 1.0
    }
}

#[derive(Module)]
struct Net {
    outer: Outer,
    shared: Block,
}

#[trace]
impl Net {
    fn forward(&self, x: Float) -> Result<Float> {
        let plus = (x * 3.0)?;
        let h = self.outer.forward(x, plus)?;
        let h = self.shared.forward(h, plus)?;
        self.shared.forward(h, plus)
    }
}

fn block(by: f64) -> Block {
    let (first, second) = (Scale { by }, Scale { by: by + 1.0 });
    Block { first, second }
}

fn net() -> Net {
    let blocks = vec![block(2.0), block(3.0)];
    Net {
        outer: Outer { blocks },
        shared: block(0.5),
    }
}

fn paths(all: &[std::sync::Arc<str>]) -> Vec<&str> {
    all.iter().map(|path| &**path).collect()
}

#[test]
fn inner_modules_are_in_outer_ones_and_compute_the_same() -> Result<()> {
    let mut gm = symbolic_trace(&net())?;
    let expected: f64 = gm.forward(1.5)?;
    let made = gm.nest_modules("**")?;
    assert_eq!(
        paths(&made),
        ["outer", "shared", "outer.blocks.0", "outer.blocks.1"]
    );
    assert_eq!(gm.forward::<f64>(1.5)?, expected);
    let outer = gm.attributes().module("outer")?;
    let outer: &dyn std::any::Any = outer;
    let outer = outer
        .downcast_ref::<GraphModule>()
        .ok_or_else(|| Error::msg("`outer` is a graph module"))?;
    assert_eq!(
        (outer.class_name(), outer.attributes().modules.len()),
        ("Outer", 2)
    );
    // Back in one graph.
    let mut flat = gm.clone();
    while let Some(call) = flat.graph().nodes().find_map(|node| {
        let path = node.target().to_string();
        let module: &dyn std::any::Any = flat.attributes().module(&path).ok()?;
        module.is::<GraphModule>().then(|| node.id())
    }) {
        flat.inline_module(call)?;
    }
    assert_eq!(flat.forward::<f64>(1.5)?, expected);
    assert_eq!(flat.graph().len(), symbolic_trace(&net())?.graph().len());
    Ok(())
}

#[test]
fn calls_that_compute_the_same_call_one_module() -> Result<()> {
    let mut gm = symbolic_trace(&net())?;
    gm.nest_modules("shared")?;
    let calls = gm.graph().nodes().filter(|node| node.target() == "shared");
    assert_eq!(calls.count(), 2);
    gm.replace_modules("shared", |_, old: &GraphModule| Ok(old.clone()))?;
    Ok(())
}

#[test]
fn only_what_matches_moves() -> Result<()> {
    let mut gm = symbolic_trace(&net())?;
    let made = gm.nest_modules("outer.blocks.*")?;
    assert_eq!(paths(&made), ["outer.blocks.0", "outer.blocks.1"]);
    assert!(
        gm.graph()
            .nodes()
            .any(|node| node.target() == "shared.first")
    );
    Ok(())
}

/// A module whose nodes have others between that need them stays as it is.
#[test]
fn what_does_not_stand_together_stays() -> Result<()> {
    let at = || SourceLocation::new("model.txt", 1, 1);
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let a = placed(at(), &[("part", "Part")], || x * 2.0)?;
        let b = (a + 1.0)?;
        placed(at(), &[("part", "Part")], || b * a)
    }))?;
    let before = gm.graph().to_string();
    assert!(gm.nest_modules("**")?.is_empty());
    assert_eq!(gm.graph().to_string(), before);
    Ok(())
}

/// Two calls of a module one after the other are two calls.
#[test]
fn a_number_behind_a_path_is_the_call() -> Result<()> {
    let at = || SourceLocation::new("model.txt", 1, 1);
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let a = placed(at(), &[("part", "Part")], || x * 2.0)?;
        placed(at(), &[("part@1", "Part")], || a * 2.0)
    }))?;
    assert_eq!(paths(&gm.nest_modules("**")?), ["part"]);
    assert_eq!(
        gm.graph()
            .nodes()
            .filter(|node| node.target() == "part")
            .count(),
        2
    );
    assert_eq!(gm.forward::<f64>(3.0)?, 12.0);
    Ok(())
}
