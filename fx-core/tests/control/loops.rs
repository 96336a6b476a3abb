//! `while_loop`.

use fx_core::prelude::*;
use fx_core::{control, operator};

use crate::support::text::without_lines;

fn greater(x: Float, than: f64) -> Result<Bool> {
    operator::gt.call_as((x, than))
}

/// Halves x until it is at most `limit`.
#[trace]
fn halved(x: Float, limit: f64) -> Result<(Float, Int)> {
    control::while_loop(
        (x, Int::from(0)),
        |(x, _)| greater(*x, limit),
        |(x, turns)| Ok(((x / 2.0)?, (turns + 1)?)),
    )
}

#[test]
fn a_loop_runs_as_often_as_its_condition_holds() -> Result<()> {
    let gm = Trace::new(traced!(halved))
        .concrete("limit", 1.0)
        .graph_module()?;
    for x in [0.5, 1.0, 1.5, 100.0, 1e9] {
        let (eager, turns) = halved(Float::from(x), 1.0)?;
        let expected = (eager.concrete().unwrap(), turns.concrete().unwrap());
        assert_eq!(gm.forward::<(f64, i64)>((x, 1.0))?, expected, "{x}");
    }
    insta::assert_snapshot!(gm.graph(), @r#"
    graph():
        %x : Float [num_users=2] = placeholder[target=x]
        %limit : f64 [num_users=1] = placeholder[target=limit]
        %assert_specialized : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%limit, "limit", 1.0), kwargs = {})
        %gt : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%x, 1.0), kwargs = {})
        %while_loop : [num_users=2] = call_module[target=while_loop_0](args = (%gt, %x, 0), kwargs = {})
        %getitem : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%while_loop, 0), kwargs = {})
        %getitem_1 : [num_users=1] = call_function[target=fx_core::operator::getitem](args = (%while_loop, 1), kwargs = {})
        return (%getitem, %getitem_1)
    "#);
    let body = gm.submodule_as::<GraphModule>("while_loop_0.body")?;
    insta::assert_snapshot!(body.graph(), @r#"
    graph():
        %carry : [num_users=1] = placeholder[target=carry]
        %carry_1 : [num_users=1] = placeholder[target=carry_1]
        %truediv : [num_users=2] = call_function[target=fx_core::operator::truediv](args = (%carry, 2.0), kwargs = {})
        %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%carry_1, 1), kwargs = {})
        %gt_1 : [num_users=1] = call_function[target=fx_core::operator::gt](args = (%truediv, 1.0), kwargs = {})
        return (%gt_1, %truediv, %add)
    "#);
    Ok(())
}

#[test]
fn turns_are_recorded_while_the_condition_is_known() -> Result<()> {
    // The count is plain for three turns; then the value decides.
    let f = traced!(|x: Float| {
        let (x, _) = control::while_loop(
            (x, Int::from(0)),
            |(x, turns)| match turns.concrete() {
                Some(turns) if turns < 3 => Ok(Bool::from(true)),
                _ => greater(*x, 10.0),
            },
            |(x, turns)| Ok(((x * 0.5)?, (turns + 1)?)),
        )?;
        Ok(x)
    });
    let gm = symbolic_trace(f)?;
    assert_eq!(gm.forward::<f64>(8.0)?, 1.0);
    assert_eq!(gm.forward::<f64>(800.0)?, 6.25);
    let products = gm
        .graph()
        .to_string()
        .matches("target=fx_core::operator::mul")
        .count();
    assert_eq!(products, 3);
    Ok(())
}

#[test]
fn loops_and_branches_nest() -> Result<()> {
    // The number of primes below n, by trial division.
    let primes = traced!(|n: Int| {
        let (_, count) = control::while_loop(
            (Int::from(2), Int::from(0)),
            |(i, _)| operator::lt.call_as::<Bool>((*i, n)),
            |(i, count)| {
                let (_, prime) = control::while_loop(
                    (Int::from(2), Int::from(1)),
                    |(d, _)| operator::le.call_as::<Bool>(((*d * *d)?, i)),
                    |(d, prime)| {
                        let divides: Bool = operator::eq.call_as(((i % d)?, 0))?;
                        let prime = control::cond(divides, || Ok(Int::from(0)), || Ok(prime))?;
                        Ok(((d + 1)?, prime))
                    },
                )?;
                Ok(((i + 1)?, (count + prime)?))
            },
        )?;
        Ok(count)
    });
    let gm = symbolic_trace(primes)?;
    for (n, count) in [(2, 0), (3, 1), (10, 4), (100, 25)] {
        assert_eq!(gm.forward::<i64>(n)?, count, "below {n}");
    }
    Ok(())
}

#[test]
fn a_state_that_changes_its_structure_is_refused() {
    let f = traced!(|x: Float| {
        let state: Value =
            control::while_loop(tree!(x), |_| greater(x, 0.0), |_| Ok(tree!((x, x))))?;
        Ok(state)
    });
    insta::assert_snapshot!(without_lines(symbolic_trace(f).unwrap_err()), @"while tracing `while_loop` (fx-core/tests/control/loops.rs:_): the state is `*` before a turn of the loop and `(*, *)` after it: every turn of a loop gives one structure. To collect a tensor per turn take `control::scan`, which stacks them, or a tensor that grows by `cat`");
}

#[test]
fn a_name_cannot_change_in_a_loop() {
    let f = traced!(|x: Float| {
        let state: Value = control::while_loop(
            tree!((x, "first")),
            |_| greater(x, 0.0),
            |_| Ok(tree!((x, "second"))),
        )?;
        Ok(state)
    });
    insta::assert_snapshot!(without_lines(symbolic_trace(f).unwrap_err()), @"while tracing `while_loop` (fx-core/tests/control/loops.rs:_): the body changes a string: in a loop whose condition is traced only tensors and numbers can change");
}
