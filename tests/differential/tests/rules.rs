//! The shape rules agree with the recorded calls: with the sizes that are there, and with names for them.
#![allow(clippy::print_stdout, reason = "its figures are read with --nocapture")]

use std::collections::{BTreeMap, BTreeSet};

use fx_differential::{Agreement, Call, shape_agreement};
use fx_nn::{Error, Result};

#[test]
fn rules_agree_with_runs() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/recorded.jsonl");
    let recorded = std::fs::read_to_string(path).map_err(Error::other)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut functions, mut without) = (BTreeSet::new(), BTreeSet::new());
    let mut found = String::new();
    for line in recorded.lines() {
        let call = Call::parse(line)?;
        for symbolic in [false, true] {
            let kind = match shape_agreement(&call, symbolic)? {
                Agreement::NoRule => {
                    without.insert(call.name.clone());
                    continue;
                }
                Agreement::Agrees => "rules_checked",
                Agreement::Unknown => "unknown",
                // A run refuses more: values, and options that no shape depends on.
                Agreement::Differs(text) if text.starts_with("not refused") => {
                    "refused_by_runs_only"
                }
                Agreement::Differs(text) => {
                    found += &format!("{} #{} {symbolic}: {text}\n", call.name, call.id);
                    "disagree"
                }
            };
            functions.insert(call.name.clone());
            *counts.entry(kind).or_default() += 1;
        }
    }
    functions.retain(|name| !without.contains(name));
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    println!("without a rule: {without:?}");
    println!(
        "functions {} rules_checked {} disagree {} refused_by_runs_only {} unknown {}",
        functions.len(),
        count("rules_checked"),
        count("disagree"),
        count("refused_by_runs_only"),
        count("unknown")
    );
    assert_eq!(found, "");
    assert!(functions.len() >= 300 && count("rules_checked") >= 10_000);
    Ok(())
}
