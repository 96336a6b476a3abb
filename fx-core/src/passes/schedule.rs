//! The order of passes: whether it keeps constraints, and one that does.
//!
//! Invariant: what no constraint moves keeps its place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};

/// Whether each constraint's first passes come before its second ones.
///
/// # Errors
/// The first constraint that is broken, with both places.
pub(super) fn validate(names: &[String], constraints: &[(String, String)]) -> Result<()> {
    for (first, second) in constraints {
        let late = names.iter().rposition(|name| name == first);
        let early = names.iter().position(|name| name == second);
        if let (Some(late), Some(early)) = (late, early)
            && late > early
        {
            return Err(Error::msg(format_args!(
                "pass `{first}` must run before `{second}`, but is number {} and `{second}` is number {}; add them in another order, \
                 or have `PassManager::sorted` find one",
                late + 1,
                early + 1
            )));
        }
    }
    Ok(())
}

/// The places in an order that keeps the constraints; of those that may come next, the first added does.
///
/// # Errors
/// When there is none: the passes of a circle.
pub(super) fn sorted(names: &[String], constraints: &[(String, String)]) -> Result<Vec<usize>> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut waits_for = vec![0usize; names.len()];
    for (first, second) in constraints {
        for (a, _) in names.iter().enumerate().filter(|(_, name)| *name == first) {
            for (b, _) in names.iter().enumerate().filter(|(_, name)| *name == second) {
                after[a].push(b);
                waits_for[b] += 1;
            }
        }
    }
    let ready = |waits_for: &[usize], at: usize| (waits_for[at] == 0).then_some(Reverse(at));
    let mut next: BinaryHeap<Reverse<usize>> = (0..names.len())
        .filter_map(|at| ready(&waits_for, at))
        .collect();
    let mut order = Vec::with_capacity(names.len());
    while let Some(Reverse(at)) = next.pop() {
        order.push(at);
        for other in &after[at] {
            waits_for[*other] -= 1;
            next.extend(ready(&waits_for, *other));
        }
    }
    if order.len() == names.len() {
        return Ok(order);
    }
    Err(Error::msg(format_args!(
        "the constraints go in a circle: {}; take one of them away",
        circle(names, &after, &waits_for).join(" before ")
    )))
}

/// One circle, from a pass back to itself.
fn circle(names: &[String], after: &[Vec<usize>], waits_for: &[usize]) -> Vec<String> {
    // Backwards from a pass that still waits, over passes that still wait, a pass comes again.
    let before =
        |at: usize| (0..names.len()).find(|a| waits_for[*a] > 0 && after[*a].contains(&at));
    let mut path: Vec<usize> = (0..names.len())
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
        .map(|at| format!("`{}`", names[*at]))
        .collect()
}
