//! `docs/routes.md`: how many samples of each operation each route computes, or why it computes none. A stale page
//! fails the test, and `UPDATE_DOCS=1` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fx_core::{Error, Result};
use fx_differential::Call;
use fx_nn::testing::{Missing, OpReport, RouteCount};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/routes.md");

/// The columns.
const ROUTES: [&str; 17] = [
    "eager",
    "traced",
    "interpreted",
    "saved",
    "normalized",
    "decomposed",
    "composed",
    "compiled",
    "static crate",
    "onnx",
    "stablehlo",
    "shape rule",
    "gradient",
    "vjp",
    "second derivative",
    "jvp",
    "vmap",
];

/// Routes that compare what is smooth: how many samples are depends on the machine's last digits.
const OF_SLOPES: [&str; 4] = ["gradient", "vjp", "second derivative", "jvp"];

fn reason(missing: Missing) -> &'static str {
    match missing {
        Missing::Random => "random",
        Missing::DataDependentShape => "shape of elements",
        Missing::HostValue => "host value",
        Missing::NotInFormat => "not in the format",
        Missing::ElementType => "element type",
        Missing::NotDifferentiable => "flat",
        Missing::Convention => "convention",
        Missing::NoForm => "",
        Missing::Effect => "no check",
        Missing::NotYet => "not yet",
        _ => "no part",
    }
}

fn cell(route: &str, count: &RouteCount) -> String {
    let most = count.reasons.iter().max_by_key(|(_, many)| **many);
    match (count.compared, most) {
        (0, Some((missing, _))) => reason(*missing).to_string(),
        (0, None) => "refused".to_string(),
        _ if OF_SLOPES.contains(&route) => "yes".to_string(),
        (compared, _) => compared.to_string(),
    }
}

/// Compares the page with what was found.
pub fn check(
    names: &BTreeMap<(&'static str, String), Vec<Call>>,
    reports: &[OpReport],
) -> Result<()> {
    let by_name: BTreeMap<&str, &OpReport> = reports
        .iter()
        .map(|report| (report.name.as_str(), report))
        .collect();
    let mut page = String::from(
        "# Operations by every route\n\n\
         Written by `UPDATE_DOCS=1 cargo test -p fx-tests --test every_op`: how many of an operation's samples, which are\n\
         recorded calls of PyTorch, each route computes and compares, or why it computes none. An empty cell says that\n\
         the operation has no form of the kind and needs none: a member of the core set is not decomposed, and what has\n\
         no kernel of its own is called by compiled code as it is.\n",
    );
    let mut chapter = "";
    for (of, name) in names.keys() {
        if chapter != *of {
            chapter = of;
            let _ = write!(page, "\n## {of}\n\n| name |");
            ROUTES
                .iter()
                .for_each(|route| page += &format!(" {route} |"));
            page += "\n|---|";
            ROUTES.iter().for_each(|_| page += "---|");
            page.push('\n');
        }
        let report = by_name.get(&*format!("{of} {name}"));
        let report = report.ok_or_else(|| Error::msg(format_args!("{name} is not checked")))?;
        let _ = write!(page, "| `{name}` |");
        for route in ROUTES {
            let count = report.routes.get(route);
            let count = count.ok_or_else(|| Error::msg(format_args!("no route {route}")))?;
            let _ = write!(page, " {} |", cell(route, count));
        }
        page.push('\n');
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PATH, &page).map_err(Error::other)?;
    }
    let found = std::fs::read_to_string(PATH).unwrap_or_default();
    match found == page {
        true => Ok(()),
        false => Err(Error::msg(
            "docs/routes.md is stale: run UPDATE_DOCS=1 cargo test -p fx-tests --test every_op",
        )),
    }
}
