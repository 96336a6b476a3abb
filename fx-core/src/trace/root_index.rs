//! `RootIndex`: the paths of what is in a trace's root.

use std::collections::hash_map::Entry;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::ir::unnamed::Unnamed;
use crate::module::paths::PathCheck;
use crate::module::walk::{ComponentKey, TensorKind, Visitor};
use crate::value::object::Object;

/// Paths of everything in the root, by identity; the first path of anything that has several.
#[derive(Default)]
pub(super) struct RootIndex {
    /// All paths, one after another.
    text: String,
    pub components: FxHashMap<ComponentKey, PathRange>,
    pub tensors: FxHashMap<u64, (PathRange, TensorKind)>,
    /// Whether each path leads to one thing.
    pub paths: PathCheck,
    /// What source cannot name.
    pub unnamed: Unnamed,
}

/// Where a path is in the index's text.
#[derive(Clone, Copy)]
pub(super) struct PathRange(usize, usize);

impl PathRange {
    /// Where it starts: greater, the later the walk found it.
    pub fn start(self) -> usize {
        self.0
    }
}

impl RootIndex {
    /// Room for a model of some hundred tensors, so that a trace of one does not start by growing.
    pub fn with_room() -> Self {
        RootIndex {
            text: String::with_capacity(4096),
            components: FxHashMap::with_capacity_and_hasher(64, FxBuildHasher),
            tensors: FxHashMap::with_capacity_and_hasher(128, FxBuildHasher),
            paths: PathCheck::default(),
            unnamed: Unnamed::default(),
        }
    }

    pub fn path(&self, range: PathRange) -> &str {
        self.text.get(range.0..range.1).unwrap_or_default()
    }

    /// The numbers that stand after a prefix in the root's paths.
    pub fn numbers_after(&self, prefix: &str) -> FxHashSet<u64> {
        let tensors = self.tensors.values().map(|(range, _)| range);
        self.components
            .values()
            .chain(tensors)
            .filter_map(|range| self.path(*range).strip_prefix(prefix)?.parse().ok())
            .collect()
    }
}

impl Visitor for RootIndex {
    fn enter(&mut self, path: &str, key: ComponentKey, _: &'static str) -> bool {
        if let Entry::Vacant(vacant) = self.components.entry(key) {
            let start = self.text.len();
            self.text.push_str(path);
            vacant.insert(PathRange(start, self.text.len()));
            return true;
        }
        // Shared: everything inside has its first name already.
        false
    }

    fn sees_copies(&self) -> bool {
        // A call of each of them is one of the path.
        true
    }

    fn may_repeat(&mut self) {
        self.paths.may_repeat = true;
    }

    fn key(&mut self, path: &str, key: &str) {
        self.paths.add_key(path, key);
    }

    fn unnamed(&mut self, path: &str, what: &str) {
        self.unnamed.0.push((path.into(), what.into()));
    }

    fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        if let Some(id) = tensor.object_id()
            && let Entry::Vacant(vacant) = self.tensors.entry(id)
        {
            let start = self.text.len();
            self.text.push_str(path);
            vacant.insert((PathRange(start, self.text.len()), kind));
        }
    }
}
