//! Assertions: recorded where the claim is traced, plain Rust where it is not.

use fx_core::prelude::*;

use crate::support::*;

/// Traces a function that asserts, and checks that a failing assertion stops it with these words.
#[track_caller]
fn stops(f: fx_core::trace::TracedFn, message: &str) -> Result<()> {
    let mut gm = symbolic_trace(f)?;
    gm.eliminate_dead_code()?;
    assert_eq!(
        names(gm.graph()),
        ["x", "sum", "gt", "_assert", "mul", "output"],
        "{}",
        gm.graph()
    );
    let (good, bad) = (Array::vec(&[3.0]), Array::vec(&[-3.0]));
    assert_eq!(gm.forward::<Array>(&good)?.to_vec()?, [9.0]);
    let error = refused(gm.forward::<Array>(&bad));
    assert!(error.to_string().ends_with(message), "{error}");
    assert!(
        error
            .location()
            .is_some_and(|l| l.file.ends_with("assertions.rs")),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_traced_claim_is_checked_in_each_run() -> Result<()> {
    stops(
        traced!(|x: &Array| {
            assert!(x.sum()? > 0.0);
            x * x
        }),
        ": assertion failed: x.sum() ? > 0.0",
    )
}

#[test]
fn a_claim_keeps_its_formatted_message() -> Result<()> {
    stops(
        traced!(|x: &Array| {
            assert!((x.sum()? > 0.0)?, "the sum of {} is not positive", "x");
            x * x
        }),
        ": the sum of x is not positive",
    )
}

#[test]
fn a_claim_may_have_an_empty_message() -> Result<()> {
    stops(
        traced!(|x: &Array| {
            assert!(x.sum()? > 0.0, "");
            x * x
        }),
        ": ",
    )
}

#[test]
fn a_claim_may_have_a_message_of_several_lines() -> Result<()> {
    stops(
        traced!(|x: &Array| {
            assert!(
                x.sum()? > 0.0,
                "
An error message with
terrible spacing"
            );
            x * x
        }),
        "\nAn error message with\nterrible spacing",
    )
}

#[trace]
fn checked(x: &Array, n: i64, open: Bool) -> Result<Array> {
    assert!(n > 0, "a plain claim is plain Rust's");
    assert!(open, "open it first");
    let check = |m: i64| assert!(m > 0 && m < 100);
    check(n);
    x * n
}

#[test]
fn plain_claims_are_not_recorded_and_traced_ones_are() -> Result<()> {
    let gm = Trace::new(traced!(checked))
        .concrete("n", 2)
        .graph_module()?;
    assert_eq!(
        names(gm.graph()),
        [
            "x",
            "n",
            "open",
            "assert_specialized",
            "_assert",
            "mul",
            "output"
        ]
    );
    same(&gm, checked(&x(), 2, true.into()), (&x(), 2, true))?;
    let error = refused(gm.forward::<Array>((&x(), 2, false)));
    assert!(error.to_string().contains("open it first"), "{error}");
    // In eager mode a failing assertion is an error as well; a plain claim panics as always.
    let error = refused(checked(&x(), 2, false.into()));
    assert!(error.to_string().contains("open it first"), "{error}");
    let panic = std::panic::catch_unwind(|| checked(&x(), -1, true.into()).map(drop));
    assert!(panic.is_err());
    Ok(())
}

/// A tensor of several elements has no truth value.
#[test]
fn an_assertion_of_many_numbers_is_an_error() {
    let error = refused(
        symbolic_trace(traced!(|x: &Array| {
            assert!(x > 0.0, "all of them");
            x * 2.0
        }))
        .and_then(|gm| gm.forward::<Array>(&x())),
    );
    assert!(error.to_string().contains("2 elements"), "{error}");
}
