//! Compares chat templates with transformers': `cargo run --release -p fx-lm --example templates -- DIR`, of the folder
//! that `fx-lm/tests/templates.py` wrote.

use std::collections::BTreeMap;
use std::path::Path;

use fx_core::{Error, Result};
use fx_lm::ChatTemplate;
use serde_json::Value;

#[path = "../tests/behaviour/cases.rs"]
mod cases;

#[allow(clippy::print_stdout)]
fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::msg("DIR is missing"))?;
    let file = std::fs::read(Path::new(&folder).join("templates.json")).map_err(Error::other)?;
    let file: Value = serde_json::from_slice(&file).map_err(Error::other)?;
    let mut templates = BTreeMap::new();
    for (name, source) in file["templates"].as_object().into_iter().flatten() {
        match ChatTemplate::new(source.as_str().unwrap_or_default()) {
            Ok(template) => drop(templates.insert(name.as_str(), (template, 0, 0))),
            Err(error) => println!("{name}: refused: {error}"),
        }
    }
    let refused = file["templates"].as_object().map_or(0, |all| all.len()) - templates.len();
    let mut differing = 0;
    let mut count = 0;
    for case in file["cases"].as_array().into_iter().flatten() {
        let Some((template, all, wrong)) =
            templates.get_mut(case["template"].as_str().unwrap_or_default())
        else {
            continue;
        };
        (*all, count) = (*all + 1, count + 1);
        if let Err(problem) = cases::compared(template, &file, case) {
            (*wrong, differing) = (*wrong + 1, differing + 1);
            println!(
                "{} {} {}: {problem}",
                case["template"], case["label"], case["options"]
            );
        }
    }
    let equal = templates
        .values()
        .filter(|(_, _, wrong)| *wrong == 0)
        .count();
    println!(
        "templates {} equal {equal} refused {refused} texts {count} differing {differing}",
        templates.len()
    );
    Ok(())
}
