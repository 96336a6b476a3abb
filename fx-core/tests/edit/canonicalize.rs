//! `Canonicalize::by_key`: the order of a user's key, what it never changes, and its options.

use std::cmp::Reverse;

use fx_core::Module;
use fx_core::ir::{Graph, NodeRef};
use fx_core::module::Attributes;
use fx_core::operator;
use fx_core::passes::{Canonicalize, CanonicalizeBy};
use fx_core::prelude::*;

use crate::support::Array;

fn by_target() -> CanonicalizeBy {
    Canonicalize::by_key(|node, inputs| (node.target().to_string(), inputs.to_vec()))
}

fn names(gm: &GraphModule) -> Vec<String> {
    let nodes = gm.graph().nodes();
    nodes.map(|node| node.name().to_string()).collect()
}

fn is_sub(node: NodeRef<'_>) -> bool {
    node.target().ends_with("sub")
}

/// Draws: its order counts.
#[wrap(effects(random))]
fn draw(x: Float) -> Result<Float> {
    Ok(x)
}

#[test]
fn impure_nodes_keep_their_order() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let first = draw((x * 2.0)?)?;
        let second = draw(x)?;
        (first + second)? + x.abs()?
    }))?;
    gm.apply(&by_target().rename(false))?;
    assert_eq!(
        names(&gm),
        [
            "x", "abs", "mul", "draw", "draw_1", "add", "add_1", "output"
        ]
    );
    assert_eq!(gm.forward::<f64>(-1.0)?, -2.0);
    gm.graph().lint()
}

#[test]
fn nothing_crosses_what_is_not_safe_to_reorder() -> Result<()> {
    let sample = || {
        symbolic_trace(traced!(|x: Float| {
            let a = (x * 2.0)?;
            let b = (x - 1.0)?;
            let c = x.abs()?;
            (a + b)? + c
        }))
    };
    let mut free = sample()?;
    free.apply(&by_target())?;
    assert_eq!(
        names(&free),
        ["x", "abs", "mul", "sub", "add", "add_1", "output"]
    );
    let mut held = sample()?;
    held.apply(&by_target().is_safe_to_reorder(|node| !is_sub(node)))?;
    assert_eq!(
        names(&held),
        ["x", "mul", "sub", "abs", "add", "add_1", "output"]
    );
    assert!(
        !held
            .apply(&by_target().is_safe_to_reorder(|node| !is_sub(node)))?
            .changed
    );
    Ok(())
}

#[test]
fn items_stand_behind_what_they_are_taken_from() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let other = graph.call_function(operator::abs, (x,), ())?;
    let whole = graph.call_function(operator::neg, (x,), ())?;
    let second = graph.call_function(operator::getitem, (whole, 1), ())?;
    let first = graph.call_function(operator::getitem, (whole, 0), ())?;
    let sum = graph.call_function(operator::add, (first, second), ())?;
    graph.output(vec![sum, other])?;
    let order = |groups: bool| -> Result<Vec<String>> {
        let mut gm = GraphModule::new(Attributes::default(), graph.clone(), "Items")?;
        // `neg` before `abs`, and items last.
        let key = |node: NodeRef<'_>, _: &[usize]| {
            let target = node.target().to_string();
            (target.ends_with("getitem"), Reverse(target))
        };
        let by_key = Canonicalize::by_key(key).rename(false);
        gm.apply(&by_key.group_getitems(groups))?;
        gm.graph().lint()?;
        Ok(names(&gm))
    };
    assert_eq!(
        order(false)?,
        ["x", "neg", "abs", "getitem", "getitem_1", "add", "output"]
    );
    assert_eq!(
        order(true)?,
        ["x", "neg", "getitem_1", "getitem", "add", "abs", "output"]
    );
    Ok(())
}

#[derive(Module)]
struct Affine {
    scale: Array,
    shift: Array,
}

#[trace]
impl Affine {
    fn forward(&self, x: &Array) -> Result<Array> {
        let shifted = (x + &self.shift)?;
        let scaled = (x * &self.scale)?;
        scaled - shifted
    }
}

#[test]
fn parameters_are_read_before_their_first_user() -> Result<()> {
    let affine = Affine {
        scale: Array::vec(&[2.0, 3.0]),
        shift: Array::vec(&[1.0, -1.0]),
    };
    let mut gm = symbolic_trace(&affine)?;
    gm.apply(&Canonicalize::by_key(|node, _| {
        Reverse(node.target().to_string())
    }))?;
    assert_eq!(
        names(&gm),
        ["x", "scale", "mul", "shift", "add", "sub", "output"]
    );
    let y: Array = gm.forward(Array::vec(&[1.0, 2.0]))?;
    assert_eq!(y.to_vec()?, [0.0, 5.0]);
    Ok(())
}
