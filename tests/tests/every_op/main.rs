//! Every operation and layer of `docs/ops.md` by every route: eager, traced, interpreted, saved,
//! normalized, decomposed, composed, compiled, as ONNX, as StableHLO, by the shape rule, and the
//! gradient by differences, and the transforms of `func`. The samples are the recorded calls of PyTorch.
//!
//! `FX_EVERY_OP="hypot,linear"` runs these alone, `FX_EVERY_OP_LINES=1` prints a line for each problem.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

mod page;
mod planted;
mod recorded;
mod stablehlo;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fx_core::Result;
use fx_differential::{Call, Outcome, documented};
use fx_nn::OpInfo;
use fx_nn::ir::{Function, registry};
use fx_nn::testing::{Missing, OpReport, Route, RouteCount, check_op, routes};
use fx_onnx::testing::ReadBack;

use recorded::by_name;

/// How many "not yet"s there may be.
const NOT_YET: usize = 25;

/// Functions with a gradient of which no sample is of `float64`.
const NO_DOUBLES: [&str; 4] = [
    "dequantize_affine",
    "unique",
    "unique_consecutive",
    "vander",
];

/// Functions whose gradient nothing is compared with.
fn without_gradient(reports: &[OpReport]) -> Result<Vec<&str>> {
    let reasons = [Missing::Convention, Missing::Random];
    let functions = registry::functions();
    let mut lacking = Vec::new();
    for report in reports {
        let (Some(name), Some(count)) = (
            report.name.strip_prefix("Functions "),
            report.routes.get("gradient"),
        ) else {
            continue;
        };
        let is_it = |f: &Function| f.path().starts_with("fx_nn::ops::") && f.name() == name;
        let is_flat = match functions.iter().find(|function| is_it(function)) {
            Some(function) => OpInfo::of(*function)?.no_gradient.is_some(),
            None => false,
        };
        let has_reason = reasons
            .iter()
            .any(|reason| count.reasons.contains_key(reason));
        if count.compared == 0 && !is_flat && !has_reason && !NO_DOUBLES.contains(&name) {
            lacking.push(name);
        }
    }
    Ok(lacking)
}

/// Checks all operations, on all cores.
fn check(
    names: &BTreeMap<(&'static str, String), Vec<Call>>,
    programs: &stablehlo::Programs,
) -> Vec<OpReport> {
    let all: Vec<_> = names.iter().collect();
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let work = || {
        let verified = programs.route();
        let mut ways: Vec<&dyn Route> = routes();
        let gradient = ways.iter().copied().find(|way| way.name() == "gradient");
        let gradient = gradient.expect("it is a route of fx-nn");
        ways.extend([&ReadBack as &dyn Route, &verified]);
        while let Some(((chapter, name), calls)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (learning, calls): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(|call| {
                // Their values are those of other calls.
                matches!(call.outcome, Outcome::Gradients(_))
            });
            let name = format!("{chapter} {name}");
            let samples: Vec<_> = calls.into_iter().map(recorded::sample).collect();
            let mut report = check_op(&name, &samples, &ways);
            for call in learning {
                let judged = recorded::Gradient {
                    call,
                    by_differences: gradient,
                };
                report.add(check_op(&name, &[recorded::sample(call)], &[&judged]));
            }
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            reports.push(report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    reports.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn every_operation_gives_the_same_by_every_route() -> Result<()> {
    let only = std::env::var("FX_EVERY_OP").ok();
    let only: Option<BTreeSet<&str>> = only.as_deref().map(|names| names.split(',').collect());
    let mut names = by_name()?;
    if let Some(only) = &only {
        names.retain(|(_, name), _| only.contains(&**name));
    }
    let programs = stablehlo::Programs::new()?;
    let reports = check(&names, &programs);
    programs.keep()?;
    let mut total = OpReport::default();
    reports.iter().cloned().for_each(|report| total.add(report));
    for (route, count) in &total.routes {
        let RouteCount {
            compared,
            refused,
            reasons,
            ..
        } = count;
        println!("route {route}: compared {compared} refused {refused} {reasons:?}");
    }
    let OpReport {
        samples,
        routes,
        wrong,
        missing,
        ..
    } = &total;
    // Lines of a few operations are printed; those of all of them on demand.
    if only.is_some() || std::env::var_os("FX_EVERY_OP_LINES").is_some() {
        wrong.iter().for_each(|line| println!("wrong: {line}"));
        missing.iter().for_each(|line| println!("missing: {line}"));
    }
    let count = |kind: &str| names.keys().filter(|(of, _)| *of == kind).count();
    let compared: usize = routes.values().map(|count| count.compared).sum();
    println!(
        "functions {} layers {} samples {samples} routes {} compared {compared} wrong {} missing_without_reason {}",
        count("Functions") + count("Operators"),
        count("Layers"),
        routes.len(),
        wrong.len(),
        missing.len(),
    );
    let not_yet = routes
        .values()
        .filter_map(|count| count.reasons.get(&Missing::NotYet));
    assert!(
        not_yet.sum::<usize>() <= NOT_YET,
        "at most {NOT_YET} are not yet there"
    );
    if only.is_none() {
        page::check(&names, &reports)?;
        let lacking: Vec<String> = documented()
            .into_iter()
            .filter(|row| !names.contains_key(&(row.chapter, row.name.clone())))
            .map(|row| format!("{} {}", row.chapter, row.name))
            .collect();
        assert!(lacking.is_empty(), "without a sample: {lacking:?}");
        let lacking = without_gradient(&reports)?;
        assert!(lacking.is_empty(), "without a gradient: {lacking:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.len());
    assert!(missing.is_empty(), "{}", missing.len());
    Ok(())
}
