//! The order of passes: checks that it satisfies constraints, and finds one that does.
//!
//! Invariant: a pass that no constraint moves keeps its place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// The names of the passes that are moved together, a list for each item.
type Items = [Vec<String>];

/// Checks that each constraint's first passes come before its second ones.
///
/// # Errors
/// Returns the first constraint that is broken, with both places, or that names a pass that is
/// missing.
pub(super) fn validate(items: &Items, constraints: &[(String, String)]) -> Result<()> {
    let names: Vec<&String> = items.iter().flatten().collect();
    for (first, second) in constraints {
        let late = names.iter().rposition(|name| *name == first);
        let early = names.iter().position(|name| *name == second);
        let late = late.ok_or_else(|| unknown(first, &names))?;
        let early = early.ok_or_else(|| unknown(second, &names))?;
        if late > early {
            return Err(broken(format_args!(
                "pass `{first}` must run before `{second}`, but is number {} and `{second}` is number {}; add them in another order, \
                 or have `PassManager::sorted` find one",
                late + 1,
                early + 1
            )));
        }
    }
    Ok(())
}

fn broken(problem: impl fmt::Display) -> Error {
    ErrorKind::Constraint(problem.to_string()).into()
}

fn unknown(name: &str, names: &[&String]) -> Error {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Error::unknown(
        name,
        format_args!(
            "a constraint names the pass `{name}`, and there is none: there are {}",
            names.join(", ")
        ),
    )
}

/// The places of the items in an order that satisfies the constraints; of the items that may come
/// next, the first added is chosen.
///
/// Returns an error with the items of a cycle if there is no order, or if a constraint names a pass
/// that is missing.
pub(super) fn sorted(items: &Items, constraints: &[(String, String)]) -> Result<Vec<usize>> {
    let names: Vec<&String> = items.iter().flatten().collect();
    let with = |name: &String| {
        let found = items.iter().enumerate();
        let found = found
            .filter(|(_, item)| item.contains(name))
            .map(|(at, _)| at);
        let found: Vec<usize> = found.collect();
        match found.is_empty() {
            true => Err(unknown(name, &names)),
            false => Ok(found),
        }
    };
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut waits_for = vec![0usize; items.len()];
    for (first, second) in constraints {
        let (firsts, seconds) = (with(first)?, with(second)?);
        for (a, b) in firsts
            .iter()
            .flat_map(|a| seconds.iter().map(move |b| (*a, *b)))
        {
            // The order inside a group is the group's own.
            if a != b || first == second {
                after[a].push(b);
                waits_for[b] += 1;
            }
        }
    }
    let ready = |waits_for: &[usize], at: usize| (waits_for[at] == 0).then_some(Reverse(at));
    let mut next: BinaryHeap<Reverse<usize>> = (0..items.len())
        .filter_map(|at| ready(&waits_for, at))
        .collect();
    let mut order = Vec::with_capacity(items.len());
    while let Some(Reverse(at)) = next.pop() {
        order.push(at);
        for other in &after[at] {
            waits_for[*other] -= 1;
            next.extend(ready(&waits_for, *other));
        }
    }
    if order.len() == items.len() {
        return Ok(order);
    }
    Err(broken(format_args!(
        "the constraints form a circle: {}; remove one of them",
        circle(items, &after, &waits_for).join(" before ")
    )))
}

/// One cycle, from an item back to itself.
fn circle(items: &Items, after: &[Vec<usize>], waits_for: &[usize]) -> Vec<String> {
    // Going backwards from a waiting item over waiting items, one item comes again.
    let before =
        |at: usize| (0..items.len()).find(|a| waits_for[*a] > 0 && after[*a].contains(&at));
    let mut path: Vec<usize> = (0..items.len())
        .find(|at| waits_for[*at] > 0)
        .into_iter()
        .collect();
    while let Some(at) = path.last().and_then(|at| before(*at)) {
        if let Some(start) = path.iter().position(|known| *known == at) {
            path.drain(..start);
            path.push(at);
            break;
        }
        path.push(at);
    }
    path.iter()
        .rev()
        .map(|at| format!("`{}`", items[*at].join(", ")))
        .collect()
}
