//! The shape rules agree with the recorded calls: with the sizes that are there, and with names for them.
#![allow(clippy::print_stdout, reason = "its figures are read with --nocapture")]

use std::collections::{BTreeMap, BTreeSet};

use fx_differential::{Agreement, Call, ask_with, recorded, shape_agreement};
use fx_nn::Result;

/// What a run refuses and no rule can: what its error says, and why the data decides it.
const DECIDED_BY_DATA: &[(&str, &str)] = &[
    (", there are ", "an index is beyond the elements"),
    ("is not one of", "a target is no class"),
    ("is none of", "a target is no class"),
    ("is not in [0, 1]", "a share or a probability is not one"),
    (
        "is not a probability",
        "a share or a probability is not one",
    ),
    ("a share ", "a share is negative or not finite"),
    ("the shares of a row", "a row has no share"),
    ("is below 0", "a number that is counted is negative"),
    ("is not below 0: ", "a variance is negative"),
    (
        "divided by zero",
        "a whole number is divided by an element that is 0",
    ),
    (
        "where the mask holds",
        "a mask holds in more places than there are elements",
    ),
    (
        "an element has no window",
        "a window is zero where no other one reaches",
    ),
    ("is singular", "a matrix has no inverse"),
    ("not positive definite", "a matrix has no factor"),
    ("not finite", "a matrix has no factors"),
    ("cannot be used", "the machine has no such device"),
];

#[test]
fn rules_agree_with_runs() -> Result<()> {
    let recorded = recorded()?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut functions, mut without) = (BTreeMap::new(), BTreeSet::new());
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
                Agreement::Differs(text) if is_decided_by_data(&text) => "refused_by_runs_only",
                Agreement::Differs(text) => {
                    found += &format!("{} #{} {symbolic}: {text}\n", call.name, call.id);
                    "disagree"
                }
            };
            *functions.entry(call.name.clone()).or_insert(0) += 1;
            *counts.entry(kind).or_default() += 1;
        }
    }
    functions.retain(|name, _| !without.contains(name));
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
    // Each call is asked about with known sizes and with names for them.
    let seldom: Vec<_> = functions.iter().filter(|(_, asked)| **asked < 20).collect();
    assert_eq!(seldom, []);
    assert!(functions.len() >= 400 && count("rules_checked") >= 14_000);
    Ok(())
}

/// No number makes a rule panic, overflow or list without end.
#[test]
fn rules_answer_whatever_the_numbers_are() -> Result<()> {
    let mut asked = 0;
    for line in recorded()?.lines().step_by(3) {
        let call = Call::parse(line)?;
        for number in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX / 2 + 1, i64::MAX] {
            asked += ask_with(&call, number)?;
        }
    }
    println!("asked with numbers {asked}");
    assert!(asked >= 10_000);
    Ok(())
}

fn is_decided_by_data(text: &str) -> bool {
    let mut classes = DECIDED_BY_DATA.iter();
    text.starts_with("not refused") && classes.any(|(says, _)| text.contains(says))
}
