//! Defects of the macros and their messages that were found in use.

#![allow(
    clippy::all,
    clippy::unwrap_used,
    reason = "forms that people write, whatever a lint would say"
)]
#![allow(missing_docs, reason = "tests")]

use crate::support;

use fx_core::control;
use fx_core::prelude::*;
use fx_core::shapes::{Claim, Spec};
use support::Tensor;

#[trace(control_flow)]
fn grows(x: Float, n: Int) -> Result<Vec<Float>> {
    let mut out = vec![x];
    for i in 0..n {
        out.push((x + i)?);
    }
    Ok(out)
}

#[trace(control_flow)]
fn grows_while(x: Float, n: Int) -> Result<Vec<Float>> {
    let mut out = vec![x];
    let mut k = Int::from(0);
    while k < n {
        out.push(x);
        k = (k + 1)?;
    }
    Ok(out)
}

#[trace(control_flow)]
fn grows_in_a_loop(x: Float, n: Int) -> Result<Vec<Float>> {
    let mut out = vec![x];
    let mut k = Int::from(0);
    loop {
        out = vec![x, x];
        k = (k + 1)?;
        if k > n {
            break;
        }
        out.push(x);
    }
    Ok(out)
}

#[trace(control_flow)]
fn differs_in_a_branch(x: Float, n: Int) -> Result<Vec<Float>> {
    let mut out = vec![x];
    if n > 1 {
        out.push(x);
    }
    Ok(out)
}

#[trace(control_flow)]
fn gives_two_structures(x: Float, n: Int) -> Result<Vec<Float>> {
    let out = if n > 1 { vec![x, x] } else { vec![x] };
    Ok(out)
}

/// The line of this file that has a text.
fn line_of(text: &str) -> usize {
    let lines = include_str!("defects.rs").lines();
    1 + lines.take_while(|line| !line.contains(text)).count()
}

#[test]
fn defect_t3_m2_errors_of_regions_are_at_their_lines() {
    for (root, text) in [
        (traced!(grows), "for i in 0..n {"),
        (traced!(grows_while), "while k < n {"),
        (traced!(grows_in_a_loop), "        if k > n {"),
        (traced!(differs_in_a_branch), "    if n > 1 {"),
        (
            traced!(gives_two_structures),
            "    let out = if n > 1 { vec",
        ),
    ] {
        let error = symbolic_trace(root)
            .map(drop)
            .map_err(|error| error.to_string());
        let place = format!("tests/defects.rs:{}", line_of(text));
        assert!(
            error.as_ref().is_err_and(|words| words.contains(&place)),
            "{place}: {error:?}"
        );
    }
}

#[test]
fn defect_t3_m2_a_loop_that_collects_names_what_to_do() {
    for root in [traced!(grows), traced!(grows_while)] {
        let words = symbolic_trace(root)
            .map(drop)
            .map_err(|error| error.to_string());
        assert!(
            words.as_ref().is_err_and(|words| words
                .contains("every turn of a loop gives one structure")
                && words.contains("`control::scan`")
                && words.contains("grows by `cat`")),
            "{words:?}"
        );
    }
}

#[test]
fn defect_t3_m3_what_a_reference_is() {
    let specs = [
        Spec::of(&2.0),
        Spec::of(&3i64),
        Spec::of(&true),
        Spec::of(&Int::from(4)),
    ];
    assert_eq!(
        specs.map(|spec| spec.to_string()),
        ["2.0", "3", "true", "4"]
    );
}

#[test]
fn defect_t3_m4_claims_read_as_they_are_written() -> Result<()> {
    for (written, shown) in [
        ("past + t <= 64", "past + t <= 64"),
        ("-past - t >= -64", "past + t <= 64"),
        ("64 - past - t >= 0", "past + t <= 64"),
        ("64 >= past + t", "past + t <= 64"),
        ("0 - n <= -4", "n >= 4"),
        ("n <= m", "n <= m"),
        ("n < m", "n < m"),
        ("2*w > h", "2*w > h"),
        ("n - m >= 0", "n >= m"),
        ("h % 4 >= 1", "h % 4 >= 1"),
        ("n - m >= 3", "n - m >= 3"),
        ("n >= 3", "n >= 3"),
    ] {
        let claim: Claim = written.parse()?;
        assert_eq!(claim.to_string(), shown, "{written}");
        let again: Claim = claim.to_string().parse()?;
        for (past, t) in [(0, 0), (60, 4), (60, 5), (3, 4), (4, 3), (8, 5)] {
            let of = |name: &str| match name {
                "past" | "n" | "w" => Some(past),
                _ => Some(t),
            };
            assert_eq!(claim.holds(of)?, again.holds(of)?, "{written} {past} {t}");
        }
    }
    Ok(())
}

#[test]
fn defect_t3_m6_a_condition_is_a_reference() -> Result<()> {
    let chosen = traced!(|q: Bool, x: Float| {
        let q = &q;
        let once = control::cond(q, || x * 2.0, || x + 1.0)?;
        control::cond(&true, || once * 3.0, || Ok(x))
    });
    let gm = symbolic_trace(chosen)?;
    let given: (f64, f64) = (gm.forward((true, 2.0))?, gm.forward((false, 2.0))?);
    assert_eq!(given, (12.0, 9.0));
    // A tensor behind a reference, whose truth is not known here.
    let gm = symbolic_trace(traced!(|q: &Tensor, x: Float| control::cond(
        q,
        || x * 2.0,
        || x + 1.0
    )))?;
    assert!(
        gm.graph()
            .to_string()
            .contains("call_module[target=cond_0]")
    );
    Ok(())
}

#[trace(control_flow)]
fn last_numbers(from: Int, to: Int) -> Result<(Int, Int)> {
    let (mut turns, mut last) = (Int::from(0), Int::from(0));
    for i in from..=to {
        turns = (turns + 1)?;
        last = i;
    }
    Ok((turns, last))
}

#[test]
fn defect_t3_m7_a_range_ends_at_the_largest_number() -> Result<()> {
    let gm = symbolic_trace(traced!(last_numbers))?;
    let half = Trace::new(traced!(last_numbers))
        .concrete("from", i64::MAX - 1)
        .graph_module()?;
    for (from, to, turns, last) in [
        (i64::MAX - 2, i64::MAX, 3, i64::MAX),
        (i64::MAX, i64::MAX, 1, i64::MAX),
        (i64::MAX, 3, 0, 0),
        (-1, 1, 3, 1),
        (5, 4, 0, 0),
    ] {
        let eager = last_numbers(from.into(), to.into())?;
        let want = (Some(turns), Some(last));
        assert_eq!((eager.0.concrete(), eager.1.concrete()), want);
        let graph: (i64, i64) = gm.forward((from, to))?;
        assert_eq!(graph, (turns, last));
    }
    let graph: (i64, i64) = half.forward((i64::MAX - 1, i64::MAX))?;
    assert_eq!(graph, (2, i64::MAX));
    Ok(())
}

/// An error that a helper gives is Rust's: it is caught eagerly, and a run of the graph fails with it.
fn helper(n: Int) -> Result<Int> {
    n.floordiv(Int::from(0))
}

#[trace(control_flow)]
fn catches(n: Int) -> Result<Int> {
    if n > 0 {
        Ok(helper(n).unwrap_or_else(|_| n))
    } else {
        Ok(n)
    }
}

#[test]
fn defect_t3_m7_an_error_that_is_caught_eagerly_ends_a_run() -> Result<()> {
    assert_eq!(catches(3.into())?.concrete(), Some(3));
    let gm = symbolic_trace(traced!(catches))?;
    assert_eq!(gm.forward::<i64>(-3)?, -3);
    assert!(gm.forward::<i64>(3).is_err());
    Ok(())
}
