//! The recorded calls agree with PyTorch, every operation of `docs/ops.md` is among them, and a wrong kernel is seen.

use std::collections::{BTreeMap, BTreeSet};

use fx_differential::{
    Call, DifferenceKind, Kind, Report, excuses, recorded, recorded_gradients, wrong,
};
use fx_nn::Result;
use fx_nn::prelude::*;

/// Runs lines, and returns the differences that no rule excuses.
fn unexcused(lines: &str) -> Result<(Report, String)> {
    let mut report = Report::default();
    let mut found = String::new();
    for line in lines.lines() {
        report.line(line, None, &mut |call, mode, difference, excuse| {
            if excuse.is_none() {
                let (name, mode) = (&call.name, mode.name());
                found += &format!("{name} #{} {mode}: {}\n", call.id, difference.text);
            }
        })?;
    }
    Ok((report, found))
}

/// The names of `docs/ops.md` with their chapters, and those of methods.
fn documented() -> BTreeSet<String> {
    let rows = fx_differential::documented();
    let names = rows.iter().flat_map(|row| {
        let method = row.is_method.then(|| format!("Methods {}", row.name));
        method
            .into_iter()
            .chain([format!("{} {}", row.chapter, row.name)])
    });
    names.collect()
}

#[test]
fn recorded_calls_agree_with_pytorch() -> Result<()> {
    let (report, found) = unexcused(&recorded()?)?;
    assert_eq!(found, "", "{report}");
    assert!(
        report.excused() * 50 <= report.calls(),
        "the table excuses at most 2 % of the calls: {report}"
    );
    Ok(())
}

#[test]
fn recorded_gradients_agree_with_pytorch() -> Result<()> {
    let (report, found) = unexcused(&recorded_gradients()?)?;
    assert_eq!(found, "", "{report}");
    assert!(report.gradients() > 2000, "{report}");
    assert!(
        recorded_gradients()?.len() <= 5 << 20,
        "the sample has at most 5 MB"
    );
    Ok(())
}

#[test]
fn a_wrong_gradient_is_seen() -> Result<()> {
    for planted in ["softmax", "conv2d", "clamp", "LayerNorm"] {
        let plant = |_: &Call, value: Value| wrong(value);
        let mut report = Report::default();
        let name = format!("\"name\":\"{planted}\"");
        for line in recorded_gradients()?
            .lines()
            .filter(|line| line.contains(&name))
        {
            report.line(line, Some(&plant), &mut |_, _, _, _| {})?;
        }
        assert!(report.wrong_gradients() >= 3, "{planted}: {report}");
    }
    Ok(())
}

#[test]
fn every_documented_name_is_called_often() -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in recorded()?.lines() {
        let call = Call::parse(line)?;
        let kinds: &[&str] = match call.kind {
            Kind::Function => &["Functions"],
            Kind::Method => &["Functions", "Methods"],
            Kind::Operator => &["Operators"],
            Kind::Layer => &["Layers"],
        };
        for kind in kinds {
            *counts.entry(format!("{kind} {}", call.name)).or_default() += 1;
        }
    }
    let rare: Vec<String> = documented()
        .into_iter()
        .filter(|name| {
            let least = if name.starts_with("Methods") { 4 } else { 20 };
            counts.get(name).is_none_or(|count| *count < least)
        })
        .collect();
    assert_eq!(rare, Vec::<String>::new(), "called too seldom");
    assert!(
        recorded()?.len() <= 11 << 19,
        "the sample has at most 5.5 MB"
    );
    Ok(())
}

#[test]
fn a_wrong_kernel_is_seen() -> Result<()> {
    for planted in ["softmax", "conv2d", "truediv", "LayerNorm"] {
        let plant = |call: &Call, value: Value| match call.name == planted {
            true => wrong(value),
            false => value,
        };
        let mut report = Report::default();
        let mut blamed = BTreeSet::new();
        for line in recorded()?.lines() {
            let name = format!("\"name\":\"{planted}\"");
            if line.contains(&name) || line.contains("\"name\":\"relu\"") {
                report.line(line, Some(&plant), &mut |call, _, _, excuse| {
                    if excuse.is_none() {
                        blamed.insert(call.name.clone());
                    }
                })?;
            }
        }
        assert!(
            report.found(DifferenceKind::Value) >= 5,
            "{planted}: {report}"
        );
        assert_eq!(blamed.into_iter().collect::<Vec<_>>(), [planted]);
    }
    Ok(())
}

#[test]
fn every_excuse_names_an_operation_and_has_a_reason() {
    let documented = documented();
    let known: BTreeSet<&str> = documented
        .iter()
        .filter_map(|n| Some(n.split_once(' ')?.1))
        .collect();
    for excuse in excuses() {
        assert!(excuse.reason.len() > 20, "{}", excuse.reason);
        for name in excuse.names {
            assert!(known.contains(name), "{name} is no operation");
        }
    }
}
