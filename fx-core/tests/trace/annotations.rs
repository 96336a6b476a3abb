//! Entries that a scope gives to the nodes that are recorded in it.

use std::panic::AssertUnwindSafe;

use fx_core::GraphModule;
use fx_core::ir::{Meta, MetaPolicy};
use fx_core::prelude::*;
use fx_core::trace::annotate;

#[derive(Debug, PartialEq)]
struct Stage(u32);
impl Meta for Stage {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

#[derive(Debug, PartialEq)]
struct Device(&'static str);
impl Meta for Device {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

fn stage(gm: &GraphModule, name: &str) -> Option<u32> {
    let node = gm.graph().find_name(name);
    node.and_then(|node| node.meta::<Stage>()).map(|s| s.0)
}

#[wrap]
fn double(x: Float) -> Result<Float> {
    x * 2.0
}

#[trace]
fn inner(x: Float) -> Result<Float> {
    double(x)? - 1.0
}

#[test]
fn the_inner_scope_wins_and_types_add_up() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| {
        let y = annotate(Stage(1), || {
            let sum = (x + 1.0)?;
            let product = annotate(Stage(2), || annotate(Device("cpu"), || sum * 3.0))?;
            inner(product)
        })?;
        y / 2.0
    }))?;
    let stages = ["x", "add", "mul", "double", "sub", "truediv"].map(|name| stage(&gm, name));
    assert_eq!(stages, [None, Some(1), Some(2), Some(1), Some(1), None]);
    let devices = gm.graph().nodes().filter(|n| n.meta::<Device>().is_some());
    assert_eq!(
        devices.map(|n| n.name().to_string()).collect::<Vec<_>>(),
        ["mul"]
    );
    assert_eq!(gm.forward::<f64>(1.0)?, 5.5);
    Ok(())
}

#[test]
fn a_scope_ends_on_unwinding() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| {
        let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
            annotate(Stage(1), || -> () {
                std::panic::resume_unwind(Box::new("stop"))
            })
        }));
        assert!(caught.is_err());
        x + 1.0
    }))?;
    assert_eq!(stage(&gm, "add"), None);
    Ok(())
}

#[test]
fn a_scope_is_for_the_traces_that_ran_before_it() -> Result<()> {
    let apart = annotate(Stage(1), || symbolic_trace(traced!(|x: Float| x + 1.0)))?;
    assert_eq!(stage(&apart, "add"), None);
    let gm = symbolic_trace(traced!(|x: Float| {
        annotate(Stage(1), || {
            let apart = symbolic_trace(traced!(|y: Float| y + 1.0))?;
            assert_eq!(stage(&apart, "add"), None);
            x + 2.0
        })
    }))?;
    assert_eq!(stage(&gm, "add"), Some(1));
    assert_eq!(annotate(Stage(1), || 3), 3);
    Ok(())
}

#[test]
fn sides_of_branches_have_entries_too() -> Result<()> {
    use fx_core::control::cond;
    let gm = symbolic_trace(traced!(|x: Float| {
        let negative = x.lt(0.0)?;
        annotate(Stage(7), || cond(negative, || x * 2.0, || x + 1.0))
    }))?;
    let cond = gm
        .graph()
        .nodes()
        .find(|node| node.op().target() == "cond_0");
    assert_eq!(cond.and_then(|n| n.meta::<Stage>()), Some(&Stage(7)));
    let then = gm.submodule_as::<GraphModule>("cond_0.then")?;
    assert_eq!(stage(then, "mul"), Some(7));
    Ok(())
}
