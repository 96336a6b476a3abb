//! What each operator of ONNX is in fx: one table, of which each family's file has the entries beside their rules.
//!
//! Invariant: an operator is known by its entry alone; a rule gives ONNX's numbers, or an error that says what fx does
//! not have.

mod affine;
mod attention;
mod boxes;
mod classic;
mod contrib;
mod contrib_attention;
mod contrib_quant;
mod control;
mod create;
mod loops;
mod maps;
mod math;
mod nchwc;
mod nn;
mod pads;
mod picks;
mod quant;
mod recurrent;
mod reduce;
mod resize;
mod scores;
mod sequence;
mod shape;
mod slices;
mod spectral;
mod stateful;
mod support_vectors;
mod texts;
mod trees;
mod windows;
mod words;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::operator::Operator;
use super::versions;

/// The entries of the families.
const FAMILIES: [&[Operator]; 28] = [
    math::TABLE,
    reduce::TABLE,
    shape::TABLE,
    slices::TABLE,
    pads::TABLE,
    picks::TABLE,
    nn::TABLE,
    recurrent::TABLE,
    stateful::TABLE,
    windows::TABLE,
    boxes::TABLE,
    resize::TABLE,
    create::TABLE,
    control::TABLE,
    loops::TABLE,
    sequence::TABLE,
    quant::TABLE,
    attention::TABLE,
    spectral::TABLE,
    contrib::TABLE,
    contrib_attention::TABLE,
    contrib_quant::TABLE,
    nchwc::TABLE,
    classic::TABLE,
    maps::TABLE,
    support_vectors::TABLE,
    words::TABLE,
    texts::TABLE,
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
