//! `lint`: checks every rule that a graph must keep, and reports all findings with their fixes.
//!
//! Rules: arguments come before their users; names are unique; there is exactly one output and it
//! is last; placeholders come first; calls fit their signatures; use lists agree with arguments.

use rustc_hash::FxHashSet;

use super::columns::input_indices;
use super::graph::Graph;
use super::node::{NodeRef, finding};
use super::op::Op;
use crate::error::{Error, ErrorKind, Result};

impl Graph {
    /// All findings, in node order.
    pub fn findings(&self) -> Vec<Error> {
        let mut found = Vec::new();
        // The highest number of each base so far.
        let mut highest = vec![0u32; self.names.bases()];
        let mut numbers_rise = true;
        let mut body_started = false;
        let mut outputs = 0usize;
        for node in self.nodes() {
            for input in node.all_input_nodes() {
                if !self.order().is_before(input.index, node.index) {
                    found.push(finding(
                        node,
                        format!(
                            "argument %{} of %{} is used before it is computed: move it up, or sort the graph",
                            input.name(),
                            node.name()
                        ),
                    ));
                }
            }
            let name = self.heads[node.index as usize].name;
            let rank = name.rank();
            let highest = &mut highest[name.base as usize];
            numbers_rise &= rank > *highest;
            *highest = rank;
            if let Err(error) = fits_signature(node) {
                found.push(node.blame("checking", error));
            }
            if !uses_agree(node) {
                found.push(finding(
                    node,
                    format!(
                        "the use lists of %{} do not agree with its arguments: set its arguments again",
                        node.name()
                    ),
                ));
            }
            match node.op() {
                Op::Placeholder(_) if body_started => found.push(finding(
                    node,
                    format!(
                        "placeholder %{} comes after other nodes: placeholders must come first",
                        node.name()
                    ),
                )),
                Op::Placeholder(_) => {}
                Op::Output => {
                    outputs += 1;
                    if node.next().is_some() {
                        found.push(finding(
                            node,
                            "the output is not the last node: move it to the end".to_string(),
                        ));
                    }
                }
                _ => body_started = true,
            }
        }
        // If the numbers of each base only rise, as in fresh names, all names are unique.
        if !numbers_rise {
            found.extend(self.shared_names());
        }
        if outputs != 1 {
            found.push(
                ErrorKind::Graph(format!(
                    "a graph has exactly one output, this one has {outputs}: {}",
                    if outputs == 0 {
                        "add one with `graph.output(..)`"
                    } else {
                        "erase all but the last"
                    }
                ))
                .into(),
            );
        }
        found
    }

    fn shared_names(&self) -> Vec<Error> {
        let name = |node: &NodeRef<'_>| self.heads[node.index as usize].name;
        let mut names: Vec<_> = self
            .nodes()
            .map(|node| (name(&node).base, name(&node).number))
            .collect();
        names.sort_unstable();
        if names.windows(2).all(|pair| pair[0] != pair[1]) {
            return Vec::new();
        }
        let mut seen = FxHashSet::default();
        self.nodes()
            .filter(|node| !seen.insert((name(node).base, name(node).number)))
            .map(|node| {
                let text = format!("two nodes are named %{}: rename one", node.name());
                finding(node, text)
            })
            .collect()
    }

    /// Checks the graph's rules.
    ///
    /// # Errors
    /// Returns an error with all findings, one per line.
    pub fn lint(&self) -> Result<()> {
        all_findings(self.findings())
    }
}

/// Returns a single finding as it is, and several as one error with a line each.
pub(crate) fn all_findings(mut found: Vec<Error>) -> Result<()> {
    match found.len() {
        0 => Ok(()),
        1 => found.pop().map_or(Ok(()), Err),
        _ => {
            let lines: Vec<String> = found.iter().map(Error::to_string).collect();
            Err(ErrorKind::Graph(lines.join("\n")).into())
        }
    }
}

/// Whether a call's arguments fit the callee, as far as the graph knows it.
fn fits_signature(node: NodeRef<'_>) -> Result<()> {
    match node.op() {
        Op::CallFunction(function) => node.fits(function.path(), function.params()),
        // If several types have the method, those that accept the arguments remain, if any do.
        Op::CallMethod(name) => match node.functions().as_slice() {
            [first, ..] => node.fits(name, first.params()),
            [] => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a node's distinct inputs match its arguments, in order.
fn uses_agree(node: NodeRef<'_>) -> bool {
    let mentioned = input_indices(node.graph().inputs_of(node.index));
    let mut inputs = node.all_input_nodes().map(|input| input.index);
    let mut seen = FxHashSet::default();
    for (i, index) in mentioned.iter().enumerate() {
        let new = match i {
            0 => true,
            1..8 => !mentioned[..i].contains(index),
            _ => {
                if seen.is_empty() {
                    seen.extend(mentioned[..i].iter().copied());
                }
                !seen.contains(index)
            }
        };
        if i >= 8 {
            seen.insert(*index);
        }
        if new && inputs.next() != Some(*index) {
            return false;
        }
    }
    inputs.next().is_none()
}
