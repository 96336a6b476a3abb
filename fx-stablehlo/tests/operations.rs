//! `docs/stablehlo-operations.md`, written from the rules: the test fails if it is stale, and `UPDATE_DOCS=1` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use fx_nn::ir::FunctionTable;
use fx_nn::lowering::{Form, Rules};
use fx_nn::passes::CoreSet;
use fx_nn::prelude::*;
use fx_stablehlo::Cx;

#[test]
fn the_page_has_every_operation() -> Result<()> {
    let mut page = String::from(
        "# How operations are written as StableHLO\n\nWritten by `UPDATE_DOCS=1 cargo test -p fx-stablehlo --test behaviour operations::`; a stale page fails that test.\n\"Operations\": the function has a rule of its own. \"Other functions\": it is written by functions that have one. \"No\": a\nprogram cannot have it, with the reason, which the error of an export gives too.\n\n| function | StableHLO |\n|---|---|\n",
    );
    let mut without = Vec::new();
    let rules = Rules::<Cx>::default();
    for (function, _) in FunctionTable::<CoreSet>::registered()?.iter() {
        let Some(name) = function.path().strip_prefix("fx_nn::ops::") else {
            continue;
        };
        let way = match rules.form(function)? {
            Some(Form::Operations) => "operations".to_string(),
            Some(Form::OtherFunctions) => "other functions".to_string(),
            Some(Form::Refused(reason)) => format!("no: {reason}"),
            _ => {
                without.push(name);
                continue;
            }
        };
        writeln!(page, "| `{name}` | {way} |").map_err(Error::other)?;
    }
    assert!(
        without.is_empty(),
        "neither a rule nor a reason: {without:?}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/stablehlo-operations.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).map_err(Error::other)?;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "fx-stablehlo/docs/stablehlo-operations.md is stale: UPDATE_DOCS=1 writes it again"
    );
    Ok(())
}
