//! What each operator of ONNX is in fx: one table, of which each family's file has the entries beside their rules.
//!
//! Invariant: an operator is known by its entry alone; a rule gives ONNX's numbers, or an error that says what fx does
//! not have.

mod attention;
mod classic;
mod contrib;
mod control;
mod create;
mod loops;
mod math;
mod nn;
mod pads;
mod picks;
mod quant;
mod recurrent;
mod reduce;
mod resize;
mod sequence;
mod shape;
mod slices;
mod spectral;
mod windows;

use std::sync::LazyLock;

use fx_nn::Result;
use rustc_hash::FxHashMap;

use super::checks::Constants;
use super::node::{Given, NodeCx};
use super::versions;

/// What reads a node.
type Rule = fn(&mut NodeCx<'_>) -> Given;

/// An operator that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub name: &'static str,
    /// The domain; empty for ONNX's own.
    pub domain: &'static str,
    /// The first version of the domain that is read by this entry. Older ones are read by an entry of a smaller one.
    pub since: i64,
    /// Refuses inputs and attributes that the operator does not have, before the rule reads them.
    pub check: Option<fn(&NodeCx<'_>) -> Result<()>>,
    /// How many elements are made of constants at most; without it, as many as the inputs have when they are broadcast.
    pub made: Option<fn(&Constants<'_>) -> u64>,
    pub rule: Rule,
    /// The inputs where a layer has its weights.
    pub weights: &'static [usize],
    /// Whether the result shares the elements of its input.
    pub is_view: bool,
    /// Whether it may draw random numbers.
    pub draws: bool,
    /// Whether its attributes may be any numbers, and not only those of sizes.
    pub any_numbers: bool,
    /// Whether it takes constants of element types that fx holds no tensors of, as wider numbers.
    pub small_ints: bool,
}

/// An entry: an operator of ONNX's own, of any version.
const fn op(name: &'static str, rule: Rule) -> Operator {
    Operator {
        name,
        domain: "",
        since: 1,
        check: None,
        made: None,
        rule,
        weights: &[],
        is_view: false,
        draws: false,
        any_numbers: false,
        small_ints: false,
    }
}

impl Operator {
    const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }

    const fn since(mut self, version: i64) -> Self {
        self.since = version;
        self
    }

    const fn check(mut self, check: fn(&NodeCx<'_>) -> Result<()>) -> Self {
        self.check = Some(check);
        self
    }

    const fn makes(mut self, made: fn(&Constants<'_>) -> u64) -> Self {
        self.made = Some(made);
        self
    }

    const fn weights(mut self, inputs: &'static [usize]) -> Self {
        self.weights = inputs;
        self
    }

    const fn views(mut self) -> Self {
        self.is_view = true;
        self
    }

    const fn draws(mut self) -> Self {
        self.draws = true;
        self
    }

    const fn any_numbers(mut self) -> Self {
        self.any_numbers = true;
        self
    }

    const fn small_ints(mut self) -> Self {
        self.small_ints = true;
        self
    }
}

/// The entries of the families.
const FAMILIES: [&[Operator]; 19] = [
    math::TABLE,
    reduce::TABLE,
    shape::TABLE,
    slices::TABLE,
    pads::TABLE,
    picks::TABLE,
    nn::TABLE,
    recurrent::TABLE,
    windows::TABLE,
    resize::TABLE,
    create::TABLE,
    control::TABLE,
    loops::TABLE,
    sequence::TABLE,
    quant::TABLE,
    attention::TABLE,
    spectral::TABLE,
    contrib::TABLE,
    classic::TABLE,
];

/// The entries by name, the newest first.
static BY_NAME: LazyLock<FxHashMap<&str, Vec<&Operator>>> = LazyLock::new(|| {
    let mut all: FxHashMap<&str, Vec<&Operator>> = FxHashMap::default();
    for entry in self::all() {
        all.entry(entry.name).or_default().push(entry);
    }
    for entries in all.values_mut() {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.since));
    }
    all
});

/// Every entry.
pub(super) fn all() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.into_iter().flatten()
}

/// The entries of an operator, the newest first; none if fx does not have it.
pub(super) fn entries<'d>(
    domain: &'d str,
    name: &str,
) -> impl Iterator<Item = &'static Operator> + use<'d> {
    let domain = versions::domain(domain);
    let found = BY_NAME.get(name).map_or(&[][..], Vec::as_slice);
    found
        .iter()
        .copied()
        .filter(move |entry| entry.domain == domain)
}

/// The entry by which an operator of a version is read.
pub(super) fn entry(domain: &str, name: &str, version: i64) -> Option<&'static Operator> {
    entries(domain, name).find(|entry| entry.since <= version)
}

/// Whether any version of an operator is `so`.
pub(super) fn is(domain: &str, name: &str, so: fn(&Operator) -> bool) -> bool {
    entries(domain, name).any(so)
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;

    #[test]
    fn a_version_of_an_operator_has_one_entry() {
        let mut known = FxHashSet::default();
        for entry in all() {
            let key = (entry.domain, entry.name, entry.since);
            assert!(known.insert(key), "{key:?} has two entries");
        }
    }
}
