//! `cond`.

use fx_core::pattern::replace_pattern;
use fx_core::prelude::*;
use fx_core::trace::{TraceContext, Tracer};
use fx_core::value::Proxy;
use fx_core::{control, operator};

use crate::support::modules::Scale;
use crate::support::text::without_lines;

fn greater(x: Float, than: f64) -> Result<Bool> {
    operator::gt.call_as((x, than))
}

#[derive(Module)]
struct Gate {
    scale: Scale,
    shift: Scale,
    double: bool,
}

#[trace]
impl Gate {
    fn forward(&self, x: Float) -> Result<Float> {
        let y: Float = control::cond(
            greater(x, 0.0),
            || self.scale.forward(x),
            || control::cond(greater(x, -5.0), || self.shift.forward(x), || x - 1.0),
        )?;
        control::cond(self.double, || y * 2.0, || Ok(y))
    }
}

fn gate(double: bool) -> Gate {
    Gate {
        scale: Scale { by: 3.0 },
        shift: Scale { by: 0.5 },
        double,
    }
}

const INPUTS: [f64; 5] = [4.0, 0.5, 0.0, -3.0, -8.0];

fn eager(gate: &Gate, x: f64) -> Result<f64> {
    gate.forward(Float::from(x))?
        .concrete()
        .ok_or_else(|| Error::msg("a number"))
}

#[test]
fn a_branch_runs_one_side() -> Result<()> {
    for double in [false, true] {
        let gate = gate(double);
        let gm = symbolic_trace(&gate)?;
        for x in INPUTS {
            assert_eq!(gm.forward::<f64>(x)?, eager(&gate, x)?, "{x}");
        }
    }
    Ok(())
}

#[test]
fn the_graph_has_the_branch_and_its_sides() -> Result<()> {
    let gm = symbolic_trace(&gate(false))?;
    insta::assert_snapshot!(gm.graph(), @r#"
    graph():
        %x : Float [num_users=2] = placeholder[target=x]
        %gt : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, 0.0), kwargs = {})
        %cond_1 : [num_users=1] = call_module[target=cond_1](args = (%gt, %x), kwargs = {})
        return %cond_1
    "#);
    let inner = gm.submodule_as::<GraphModule>("cond_1.otherwise")?;
    insta::assert_snapshot!(inner.graph(), @r#"
    graph():
        %x : [num_users=2] = placeholder[target=x]
        %gt_1 : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, -5.0), kwargs = {})
        %cond : [num_users=1] = call_module[target=cond_0](args = (%gt_1, %x), kwargs = {})
        return %cond
    "#);
    // What only a side calls is in the side.
    assert!(gm.submodule_as::<Scale>("cond_1.then.scale").is_ok());
    assert!(gm.submodule_as::<Scale>("scale").is_err());
    Ok(())
}

#[test]
fn results_that_are_the_same_are_not_results() -> Result<()> {
    let f = traced!(|x: Float, c: Bool| {
        let (a, b, k) = control::cond(
            c,
            || Ok(((x * 2.0)?, x, Int::from(3))),
            || Ok((x, x, Int::from(3))),
        )?;
        Ok((a, b, k))
    });
    let gm = symbolic_trace(f)?;
    assert_eq!(gm.forward::<(f64, f64, i64)>((2.0, true))?, (4.0, 2.0, 3));
    assert_eq!(gm.forward::<(f64, f64, i64)>((2.0, false))?, (2.0, 2.0, 3));
    assert_eq!(gm.graph().to_string().matches("getitem").count(), 0);
    Ok(())
}

#[test]
fn a_branch_without_results_is_gone_unless_it_does_something() -> Result<()> {
    let f = traced!(|x: Float, c: Bool| {
        control::cond(c, || (x * 2.0).map(|_| ()), || Ok(()))?;
        Ok(x)
    });
    let gm = symbolic_trace(f)?;
    assert_eq!(gm.graph().len(), 3);
    Ok(())
}

#[test]
fn structures_that_differ_are_refused() {
    let f = traced!(|x: Float, c: Bool| {
        let y: Value = control::cond(c, || Ok(tree!((x, x))), || Ok(tree!(x)))?;
        Ok(y)
    });
    let error = symbolic_trace(f).unwrap_err();
    insta::assert_snapshot!(without_lines(error), @"while tracing `cond` (fx-core/tests/control/branches.rs:_): the value of the branch is `(*, *)` after one side and `*` after the other: both sides of a branch give one structure");
}

#[test]
fn none_on_one_side_only_is_refused() {
    let f = traced!(|x: Float, c: Bool| {
        let y: Option<Float> = control::cond(c, || Ok(None), || Ok(Some((x * 2.0)?)))?;
        Ok(y.unwrap_or(x))
    });
    let error = symbolic_trace(f).unwrap_err();
    insta::assert_snapshot!(without_lines(error), @"while tracing `cond` (fx-core/tests/control/branches.rs:_): the value of the branch is `None` after one side and a value after the other, and only a run knows which: give a value on both sides, such as a mask that masks nothing, or do in each side what needs the value");

    #[trace(control_flow)]
    fn g(x: Float, c: Bool) -> Result<Float> {
        let mut y: Option<Float> = None;
        if c {
            y = Some((x * 2.0)?);
        }
        Ok(y.unwrap_or(x))
    }
    let error = symbolic_trace(traced!(g)).unwrap_err();
    insta::assert_snapshot!(without_lines(error), @"while tracing `cond` (fx-core/tests/control/branches.rs:_): `y` is `None` after one side and a value after the other, and only a run knows which: give a value on both sides, such as a mask that masks nothing, or do in each side what needs the value");
}

#[test]
fn what_is_computed_in_a_side_cannot_be_used_outside() {
    let f = traced!(|x: Float, c: Bool| {
        let kept = std::cell::Cell::new(x);
        control::cond(
            c,
            || {
                kept.set((x * 2.0)?);
                x * 3.0
            },
            || Ok(x),
        )?;
        kept.get() + 1.0
    });
    let error = symbolic_trace(f).unwrap_err();
    insta::assert_snapshot!(without_lines(error), @"while tracing `add` (fx-core/tests/control/branches.rs:_): %mul was computed in a branch that a traced value decides (fx-core/tests/control/branches.rs:_), and is used outside of it: return it from there");
}

#[test]
fn a_tracer_decides() -> Result<()> {
    struct Always(bool);
    impl Tracer for Always {
        fn branch(&self, _: &TraceContext, _: Proxy) -> Result<Option<bool>> {
            Ok(Some(self.0))
        }
    }
    let gate = gate(false);
    let gm = Trace::new(&gate).tracer(Always(true)).graph_module()?;
    assert_eq!(gm.forward::<f64>(-1.0)?, -3.0);
    assert!(!gm.graph().to_string().contains("cond"));
    let report = Trace::new(&gate).tracer(Always(true)).report()?;
    assert!(
        report.to_string().contains("branch of %gt = true"),
        "{report}"
    );
    Ok(())
}

#[test]
fn a_saved_branch_loads() -> Result<()> {
    let gate = gate(true);
    let gm = symbolic_trace(&gate)?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    for x in INPUTS {
        assert_eq!(loaded.forward::<f64>(x)?, eager(&gate, x)?);
    }
    Ok(())
}

#[test]
fn a_graph_with_a_branch_is_traced_again_and_interpreted() -> Result<()> {
    let gate = gate(true);
    let gm = symbolic_trace(&gate)?;
    let again = symbolic_trace(&gm)?;
    let mut copy = gm.clone();
    copy.eliminate_dead_code()?;
    copy.graph().lint()?;
    for x in INPUTS {
        assert_eq!(again.forward::<f64>(x)?, eager(&gate, x)?);
        assert_eq!(copy.forward::<f64>(x)?, eager(&gate, x)?);
    }
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    Ok(())
}

#[test]
fn sides_are_printed_in_their_caller_and_lose_dead_code() -> Result<()> {
    let f = traced!(|x: Float, c: Bool| {
        control::cond(
            c,
            || {
                let _unused = (x * 7.0)?;
                x * 2.0
            },
            || Ok(x),
        )
    });
    let mut gm = symbolic_trace(f)?;
    let text = gm.print_readable();
    assert!(
        text.contains("if c {\n            // cond_0.then\n"),
        "{text}"
    );
    assert!(text.contains("// cond_0.otherwise\n"), "{text}");
    assert!(text.contains("x * 7.0"), "{text}");
    assert_eq!(gm.eliminate_dead_code()?, 1);
    assert!(!gm.print_readable().contains("x * 7.0"));
    assert_eq!(gm.forward::<f64>((3.0, true))?, 6.0);
    Ok(())
}

#[test]
fn a_side_is_edited_by_path() -> Result<()> {
    let mut gm = symbolic_trace(&gate(false))?;
    gm.submodule_as_mut::<Scale>("cond_1.then.scale")?.by = 10.0;
    assert_eq!(gm.forward::<f64>(2.0)?, 20.0);
    let side = gm.submodule_as_mut::<GraphModule>("cond_1.otherwise.cond_0.otherwise")?;
    let swapped = replace_pattern(
        side,
        traced!(|x: Float| x - 1.0),
        traced!(|x: Float| x + 1.0),
    )?;
    assert_eq!(swapped.len(), 1);
    assert_eq!(gm.forward::<f64>(-8.0)?, -7.0);
    Ok(())
}

#[test]
fn two_branches_that_call_one_module_share_its_tensors_and_leave_none_behind() -> Result<()> {
    let scale = Scale { by: 2.0 };
    #[derive(Module)]
    struct Twice {
        scale: Scale,
    }
    #[trace]
    impl Twice {
        fn forward(&self, x: Float) -> Result<Float> {
            let y = control::cond(greater(x, 0.0), || self.scale.forward(x), || Ok(x))?;
            control::cond(greater(y, 1.0), || self.scale.forward(y), || Ok(y))
        }
    }
    let gm = symbolic_trace(&Twice { scale })?;
    assert_eq!(gm.forward::<f64>(1.0)?, 4.0);
    assert!(gm.submodule("scale").is_err());
    Ok(())
}
