//! Branches and loops as source: `written.rs` is what `code()` writes, and is compiled here.
//!
//! `UPDATE_SOURCE=1` writes it anew.

use fx_core::prelude::*;

use super::syntax::{INPUTS, breaks, chooses, collatz, counted, early, repeats, same, sides};

#[path = "written.rs"]
#[rustfmt::skip]
mod written;

use written::{Breaks, Chooses, Collatz, Counted, Early, Repeats, Sides};

/// What `written.rs` holds.
fn source() -> Result<String> {
    let mut text = "//! Written by the tests of `source.rs`.\n#![allow(clippy::all, unused, reason = \"generated\")]\n\nuse fx_core::module::Tag;\nuse fx_core::prelude::*;\n".to_string();
    for (name, gm) in [
        ("Sides", symbolic_trace(traced!(sides))?),
        ("Breaks", symbolic_trace(traced!(breaks))?),
        ("Early", symbolic_trace(traced!(early))?),
        ("Collatz", symbolic_trace(traced!(collatz))?),
        ("Repeats", symbolic_trace(traced!(repeats))?),
        ("Chooses", symbolic_trace(traced!(chooses))?),
        ("Counted", symbolic_trace(traced!(counted))?),
    ] {
        let code = gm.code().replace('\n', "\n    ");
        let code = code.trim_end();
        text += &format!(
            "\n#[derive(Module, Default)]\npub struct {name} {{\n    tag: Tag,\n}}\n\n#[trace(control_flow)]\nimpl {name} {{\n    {code}\n}}\n"
        );
    }
    Ok(text)
}

#[test]
fn the_source_is_what_is_written() -> Result<()> {
    let text = source()?;
    if std::env::var_os("UPDATE_SOURCE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control/written.rs");
        std::fs::write(file, &text).map_err(Error::msg)?;
    }
    let words = |text: &str| text.split_whitespace().collect::<String>();
    assert!(words(&text) == words(include_str!("written.rs")), "{text}");
    Ok(())
}

#[test]
fn written_source_computes_the_same_and_traces_again() -> Result<()> {
    same(&symbolic_trace(&Sides::default())?, sides, &INPUTS)?;
    same(&symbolic_trace(&Breaks::default())?, breaks, &INPUTS)?;
    same(&symbolic_trace(&Early::default())?, early, &INPUTS)?;
    same(&symbolic_trace(&Repeats::default())?, repeats, &INPUTS)?;
    for n in [1i64, 6, 27] {
        let steps = collatz(Int::from(n))?.concrete();
        assert_eq!(Collatz::default().forward(Int::from(n))?.concrete(), steps);
        assert_eq!(
            symbolic_trace(&Collatz::default())?.forward::<i64>(n)?,
            steps.unwrap_or(-1)
        );
    }
    for n in -7i64..9 {
        let eager = counted(Float::from(1.5), Int::from(n))?.concrete();
        assert_eq!(
            Counted::default()
                .forward(Float::from(1.5), Int::from(n))?
                .concrete(),
            eager
        );
        for up in [false, true] {
            let eager = chooses(Float::from(1.5), Int::from(n), Bool::from(up))?.concrete();
            let written =
                Chooses::default().forward(Float::from(1.5), Int::from(n), Bool::from(up))?;
            assert_eq!(written.concrete(), eager, "{n}");
        }
    }
    Ok(())
}

/// The source of a graph without what nobody uses: a written loop carries its condition too.
fn code(gm: Result<GraphModule>) -> Result<String> {
    let mut gm = gm?;
    gm.eliminate_dead_code()?;
    Ok(renamed(&gm.code()))
}

/// The names of values numbered in the order of their places.
fn renamed(code: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = code;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        text += before;
        let bound = name.trim_end_matches(char::is_numeric);
        match bound.ends_with('_') && bound.len() < name.len() {
            true => {
                let known = names.iter().position(|known| *known == name);
                let at = known.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                text += &format!("{bound}#{at}");
            }
            false => text += name,
        }
        rest = after;
    }
    text + rest
}

#[test]
fn source_traces_to_the_graph_that_was_written() -> Result<()> {
    assert_eq!(
        code(symbolic_trace(&Sides::default()))?,
        code(symbolic_trace(traced!(sides)))?
    );
    assert_eq!(
        code(symbolic_trace(&Early::default()))?,
        code(symbolic_trace(traced!(early)))?
    );
    assert_eq!(
        code(symbolic_trace(&Chooses::default()))?,
        code(symbolic_trace(traced!(chooses)))?
    );
    assert_eq!(
        code(symbolic_trace(&Collatz::default()))?,
        code(symbolic_trace(traced!(collatz)))?
    );
    assert_eq!(
        code(symbolic_trace(&Breaks::default()))?,
        code(symbolic_trace(traced!(breaks)))?
    );
    assert_eq!(
        code(symbolic_trace(&Repeats::default()))?,
        code(symbolic_trace(traced!(repeats)))?
    );
    assert_eq!(
        code(symbolic_trace(&Counted::default()))?,
        code(symbolic_trace(traced!(counted)))?
    );
    Ok(())
}
