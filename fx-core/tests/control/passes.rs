//! What passes do inside branches and loops, and with those whose condition is known.

use fx_core::ir::Argument;
use fx_core::passes::{Cse, DeadCode, FoldConstants, SimplifyControl, pass_fn};
use fx_core::prelude::*;

#[trace(control_flow)]
fn twice(x: Float, n: Int) -> Result<Float> {
    let mut h = x;
    if h > 0.0 {
        h = ((h + 1.0)? * (h + 1.0)?)?;
    }
    for _ in 0..n {
        let (a, b) = ((h * 0.5)?, (h * 0.5)?);
        h = (a + (b - 3.0)?)?;
    }
    Ok(h)
}

fn values(gm: &GraphModule) -> Result<Vec<f64>> {
    let inputs = [(2.0, 0), (2.0, 3), (-1.0, 2)];
    inputs.iter().map(|(x, n)| gm.forward((*x, *n))).collect()
}

#[test]
fn a_pass_works_on_sides_and_bodies() -> Result<()> {
    let mut gm = symbolic_trace(traced!(twice))?;
    let before = values(&gm)?;
    assert_eq!(gm.code().matches("+ 1.0").count(), 2);
    assert!(gm.apply(&Cse::new())?.changed);
    let code = gm.code();
    assert_eq!(code.matches("+ 1.0").count(), 1, "{code}");
    assert_eq!(code.matches("* 0.5").count(), 1, "{code}");
    assert_eq!(values(&gm)?, before);
    assert!(!gm.apply(&Cse::new())?.changed);
    Ok(())
}

#[test]
fn a_pass_that_fails_leaves_the_sides_as_they_were() -> Result<()> {
    let mut gm = symbolic_trace(traced!(twice))?;
    let before = gm.to_bytes()?;
    let half_done = pass_fn("half_done", |gm| {
        let side = gm.submodule_as_mut::<GraphModule>("cond_0.then")?;
        side.apply(&Cse::new())?;
        gm.eliminate_dead_code()?;
        Err(Error::msg("it stops half way"))
    });
    assert!(gm.apply(&half_done).is_err());
    assert_eq!(gm.to_bytes()?, before);
    Ok(())
}

/// Sets the condition of the first branch or loop of that name.
fn decide(gm: &mut GraphModule, name: &str, truth: bool) -> Result<()> {
    let call = gm.graph().find_name(name).map(|node| node.id());
    let call = call.ok_or_else(|| Error::msg(name.to_string()))?;
    gm.graph_mut()
        .node_mut(call)?
        .update_arg(0, Argument::Bool(truth))
}

#[test]
fn the_side_that_is_taken_stands_for_the_branch() -> Result<()> {
    let mut gm = symbolic_trace(traced!(twice))?;
    decide(&mut gm, "cond", true)?;
    decide(&mut gm, "while_loop", false)?;
    gm.apply(&SimplifyControl)?;
    let code = gm.code();
    assert!(!code.contains("if ") && !code.contains("while "), "{code}");
    assert_eq!(gm.forward::<f64>((2.0, 7))?, 9.0);
    gm.apply(&DeadCode)?;
    assert!(gm.named_modules().into_keys().all(|path| path.is_empty()));
    Ok(())
}

#[trace(control_flow)]
fn several(x: Float, up: Bool) -> Result<Float> {
    let (mut a, mut b) = (x, (x * 2.0)?);
    if up {
        a = (a + b)?;
        b = (b - 1.0)?;
        if (x + 1.0)? > 0.0 {
            b = (b * 3.0)?;
        }
    } else {
        a = (a - b)?;
    }
    a * b
}

#[test]
fn a_side_with_several_results_is_taken() -> Result<()> {
    for up in [false, true] {
        let mut gm = symbolic_trace(traced!(several))?;
        let expected = gm.forward::<f64>((2.0, up))?;
        decide(&mut gm, "cond_1", up)?;
        gm.apply(&FoldConstants::new())?;
        gm.apply(&SimplifyControl)?;
        assert_eq!(gm.forward::<f64>((2.0, up))?, expected);
        assert!(!gm.code().contains("if up"), "{}", gm.code());
    }
    Ok(())
}
