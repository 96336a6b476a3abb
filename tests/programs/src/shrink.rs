//! Shrinking a case on which a path fails, and showing what is left.
//!
//! Invariant: what is shrunk fails as before.

use std::fmt::Write as _;

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;

use crate::generate::Case;
use crate::program::{Body, Id, Results, Run, Source, Step, reads};

/// The case with fewer results, bindings and steps that still fails.
pub fn shrunk(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut case = case.clone();
    for id in case.program.results.ids().to_vec() {
        let mut one = case.clone();
        one.program.results = Results::Flat(vec![id]);
        if fails(&one) {
            case = one;
            break;
        }
    }
    case = needed(case, fails);
    for at in 0..case.bindings.len() {
        let mut one = case.clone();
        one.bindings = vec![case.bindings[at].clone()];
        let (inputs, _) = &one.bindings[0];
        let k = one.specs.last().cloned();
        one.specs = inputs.iter().map(Spec::of).chain(k).collect();
        one.named = false;
        if fails(&one) {
            case = one;
            break;
        }
    }
    for at in 0..case.program.steps.len() {
        if let Ok(one) = without(&case, at)
            && fails(&one)
        {
            case = one;
        }
    }
    needed(case, fails)
}

/// Without the steps that no result needs.
fn needed(case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut used: Vec<Id> = case.program.results.ids().to_vec();
    let mut keep = Vec::new();
    for step in case.program.steps.iter().rev() {
        if step.gives().iter().any(|id| used.contains(id)) {
            reads(step, &mut used);
            keep.push(step.clone());
        }
    }
    keep.reverse();
    let mut less = case.clone();
    less.program.steps = keep;
    if fails(&less) { less } else { case }
}

/// What a step gives, as constants.
fn without(case: &Case, at: usize) -> Result<Case> {
    let mut case = case.clone();
    let (inputs, k) = case.bindings[0].clone();
    let mut run = Run::new(inputs, Int::from(k));
    let step = case.program.steps[at].clone();
    run.steps(&case.fresh()?, &case.program.steps[..=at])?;
    let mut constants = Vec::new();
    for id in step.gives() {
        case.program.constants.push(run.value(*id)?.clone());
        constants.push(Step::Constant(case.program.constants.len() - 1, *id));
    }
    case.program.steps.splice(at..=at, constants);
    Ok(case)
}

fn sources(from: &[Source]) -> String {
    let one = |source: &Source| match source {
        Source::Var(id) => format!("%{id}"),
        Source::Constant(at) => format!("constants.{at}"),
        Source::Fit(id, times, shape, dtype) => {
            format!("fit(%{id} {times} times, {dtype} {shape:?})")
        }
    };
    from.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn write(steps: &[Step], indent: usize, out: &mut String) {
    let body = |name: &str, body: &Body, out: &mut String| {
        let _ = writeln!(
            out,
            "{:indent$}  {name} {:?} -> {:?}:",
            "", body.inputs, body.results
        );
        write(&body.steps, indent + 4, out);
    };
    for step in steps {
        let _ = write!(out, "{:indent$}{:?} = ", "", step.gives());
        let _ = match step {
            Step::Constant(at, _) => writeln!(out, "constants.{at}"),
            Step::Call { call, from, .. } => {
                writeln!(
                    out,
                    "{} #{} {:?} of {}",
                    call.name,
                    call.id,
                    call.args,
                    sources(from)
                )
            }
            Step::Index(of, parts, _) => writeln!(out, "%{of}{parts:?}"),
            Step::Cond(test, sides, _) => {
                let _ = writeln!(out, "cond {test:?}");
                sides.iter().for_each(|side| body("side", side, out));
                Ok(())
            }
            Step::While(turns, carried, inner, _) => {
                let _ = writeln!(out, "while {turns:?} {carried:?}");
                body("body", inner, out);
                Ok(())
            }
            Step::Scan(over, carried, inner, _) => {
                let _ = writeln!(out, "scan %{over} {carried:?}");
                body("step", inner, out);
                Ok(())
            }
        };
    }
}

/// A case as text.
pub fn shown(case: &Case) -> String {
    let mut out = String::new();
    let (inputs, k) = &case.bindings[0];
    let _ = writeln!(
        out,
        "  specs {}",
        case.specs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    );
    for (at, input) in inputs.iter().enumerate() {
        let data = input
            .to_vec()
            .map(|v| v.into_iter().take(16).collect::<Vec<_>>());
        let _ = writeln!(out, "  %{at} {:?} {data:?}", input.dims());
    }
    let _ = writeln!(out, "  k = {k}");
    for (at, constant) in case.program.constants.iter().enumerate() {
        let data = constant
            .to_vec()
            .map(|v| v.into_iter().take(16).collect::<Vec<_>>());
        let mut named = String::new();
        write(&case.program.steps, 2, &mut named);
        let name = format!("constants.{at}");
        if named.split([' ', ',', '\n']).any(|word| word == name) {
            let _ = writeln!(
                out,
                "  constants.{at} {:?} {:?} {data:?}",
                constant.dtype(),
                constant.dims()
            );
        }
    }
    write(&case.program.steps, 2, &mut out);
    let _ = writeln!(out, "  results {:?}", case.program.results);
    out
}
