//! `docs/operations.md` and `docs/operators.md`, written from the rules and from the table of operators: a test fails if
//! its page is stale, and `UPDATE_DOCS=1` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use fx_nn::ir::FunctionTable;
use fx_nn::lowering::{Form, Rules};
use fx_nn::passes::CoreSet;
use fx_nn::prelude::*;
use fx_onnx::Cx;

/// How a function is written.
fn way(function: fx_nn::ir::Function) -> Result<Option<String>> {
    let form = Rules::<Cx>::default().form(function)?;
    Ok(form.and_then(|form| match form {
        Form::Operations => Some("nodes".to_string()),
        Form::OtherFunctions => Some("other functions".to_string()),
        Form::Refused(reason) => Some(format!("no: {reason}")),
        _ => None,
    }))
}

#[test]
fn the_page_has_every_operation() -> Result<()> {
    let mut page = String::from(
        "# How operations are written as ONNX\n\nWritten by `UPDATE_DOCS=1 cargo test -p fx-onnx --test behaviour operations::`; a stale page fails that test.\n\"Nodes\": the function has a rule of its own. \"Other functions\": it is written by functions that have one. \"No\": ONNX\ncannot have it, with the reason, which the error of an export gives too.\n\n| function | ONNX |\n|---|---|\n",
    );
    let mut without = Vec::new();
    for (function, _) in FunctionTable::<CoreSet>::registered()?.iter() {
        let Some(name) = function.path().strip_prefix("fx_nn::ops::") else {
            continue;
        };
        match way(function)? {
            Some(way) => writeln!(page, "| `{name}` | {way} |").map_err(Error::other)?,
            None => without.push(name),
        }
    }
    assert!(
        without.is_empty(),
        "neither a rule nor a reason: {without:?}"
    );
    recorded("operations", &page)
}

/// Compares a page with what it has to be, or writes it again.
fn recorded(name: &str, page: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.md"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).map_err(Error::other)?;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "fx-onnx/docs/{name}.md is stale: UPDATE_DOCS=1 writes it again"
    );
    Ok(())
}

#[test]
fn the_page_has_every_operator_that_is_read() -> Result<()> {
    let mut page = String::from(
        "# Operators that are read\n\nWritten by `UPDATE_DOCS=1 cargo test -p fx-onnx --test behaviour operations::` from the table by which files are read;\na stale page fails that test. `fx_onnx::operators()` lists them, `fx_onnx::support(path)` compares a file with them.\n",
    );
    let mut domain = None;
    for op in fx_onnx::operators() {
        if domain != Some(op.domain) {
            domain = Some(op.domain);
            let name = match op.domain {
                "" => "ONNX's own",
                name => name,
            };
            write!(page, "\n## {name}\n\n").map_err(Error::other)?;
        }
        writeln!(page, "- `{}`", op.name).map_err(Error::other)?;
    }
    recorded("operators", &page)
}
