//! `check_paths`: each path of a hierarchy leads to one thing, since parameters, nodes and files
//! are found by path.
//!
//! Invariant: a hierarchy that passes has no two parts at one path, and no name that is empty or
//! contains a dot.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::walk::{Component, ComponentKey, TensorKind, Visitor, walk};
use crate::error::{Error, Result};
use crate::value::object::{Object, short_type_name};

/// Rejects a hierarchy in which a path leads to two things.
pub(super) fn check_paths(component: &(impl Component + ?Sized)) -> Result<()> {
    struct Whole(PathCheck, FxHashSet<ComponentKey>);
    impl Visitor for Whole {
        fn enter(&mut self, _: &str, key: ComponentKey, _: &'static str) -> bool {
            // The contents of a shared module were seen under its first path.
            self.1.insert(key)
        }
        fn may_repeat(&mut self) {
            self.0.may_repeat = true;
        }
        fn key(&mut self, path: &str, key: &str) {
            self.0.add_key(path, key);
        }
    }
    let mut whole = Whole(PathCheck::default(), FxHashSet::default());
    walk(component, &mut whole);
    whole.0.finish(component)
}

/// Looks for a repeated path by hashes, which show at low cost that there is none.
fn check_hashes(component: &(impl Component + ?Sized)) -> Result<()> {
    #[derive(Default)]
    struct Hashes {
        seen: FxHashSet<u64>,
        components: FxHashSet<ComponentKey>,
        repeats: bool,
    }
    impl Hashes {
        fn add(&mut self, path: &str) {
            let mut hasher = FxHasher::default();
            path.hash(&mut hasher);
            self.repeats |= !self.seen.insert(hasher.finish());
        }
    }
    impl Visitor for Hashes {
        fn enter(&mut self, path: &str, key: ComponentKey, _: &'static str) -> bool {
            self.add(path);
            self.components.insert(key)
        }
        fn tensor(&mut self, path: &str, _: TensorKind, _: &dyn Object) {
            self.add(path);
        }
    }
    let mut hashes = Hashes::default();
    walk(component, &mut hashes);
    match hashes.repeats {
        true => check_precisely(component),
        false => Ok(()),
    }
}

/// Finds the exact problem after hashes indicated a repeated path.
fn check_precisely(component: &(impl Component + ?Sized)) -> Result<()> {
    let mut precise = Precise::default();
    walk(component, &mut precise);
    precise.problem.map_or(Ok(()), Err)
}

/// Checks that a map's key is the name of a single part.
fn check_key(path: &str, key: &str) -> Result<()> {
    let map = match path {
        "" => "the map at the root".to_string(),
        path => format!("the map at `{path}`"),
    };
    let problem = if key.is_empty() {
        format!("{map} has an empty key: give each of its modules and tensors a name")
    } else if key.contains('.') {
        format!(
            "{map} has the key `{key}`: a dot separates the names of a path, so a name has none; write `_`, or nest maps"
        )
    } else {
        return Ok(());
    };
    Err(Error::msg(problem))
}

/// The check as part of another walk, which tells where paths may repeat: names of derived fields
/// and keys of a map are different, and so are the paths that they make.
#[derive(Default)]
pub(crate) struct PathCheck {
    pub may_repeat: bool,
    problem: Option<Error>,
}

impl PathCheck {
    /// Checks a key of a map.
    pub fn add_key(&mut self, path: &str, key: &str) {
        if self.problem.is_none() {
            self.problem = check_key(path, key).err();
        }
    }

    /// Reports the result of the walk over a component.
    ///
    /// # Errors
    /// Same as [`ComponentExt::check_paths`](super::hierarchy::ComponentExt::check_paths).
    pub fn finish(self, component: &(impl Component + ?Sized)) -> Result<()> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        match self.may_repeat {
            true => check_hashes(component),
            false => Ok(()),
        }
    }
}

/// The identity of the thing at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    Component(ComponentKey),
    Tensor(Option<u64>),
}

struct Part {
    identity: Identity,
    what: String,
    /// The walk is inside it: a part flattened into it may have the same path.
    is_open: bool,
}

/// Finds which two parts are at one path.
#[derive(Default)]
struct Precise {
    parts: FxHashMap<String, Vec<Part>>,
    components: FxHashSet<ComponentKey>,
    problem: Option<Error>,
}

impl Precise {
    fn add(&mut self, path: &str, part: Part) {
        let there = self.parts.entry(path.to_string()).or_default();
        let is_same = |other: &Part| match part.identity {
            Identity::Tensor(None) => false,
            identity => identity == other.identity,
        };
        if let Some(other) = there.iter().find(|other| !other.is_open && !is_same(other)) {
            let place = match path {
                "" => "at the root".to_string(),
                path => format!("at `{path}`"),
            };
            self.problem.get_or_insert_with(|| {
                Error::taken(path, format_args!(
                    "two parts are {place}, {} and {}: parameters, nodes and files are found by path, so rename one of them",
                    other.what, part.what
                ))
            });
        }
        there.push(part);
    }
}

impl Visitor for Precise {
    fn enter(&mut self, path: &str, key: ComponentKey, type_name: &'static str) -> bool {
        let is_new = self.components.insert(key);
        let part = Part {
            identity: Identity::Component(key),
            what: format!("a `{}`", short_type_name(type_name)),
            is_open: is_new,
        };
        self.add(path, part);
        is_new
    }

    fn leave(&mut self, path: &str, key: ComponentKey) {
        let parts = self.parts.get_mut(path).into_iter().flatten();
        for part in parts.filter(|part| part.identity == Identity::Component(key)) {
            part.is_open = false;
        }
    }

    fn tensor(&mut self, path: &str, kind: TensorKind, tensor: &dyn Object) {
        let what = match kind {
            TensorKind::Parameter => "a parameter",
            TensorKind::Buffer | TensorKind::NonPersistentBuffer => "a buffer",
        };
        let shape = tensor.shape().map(|shape| format!(" of shape {shape:?}"));
        let part = Part {
            identity: Identity::Tensor(tensor.object_id()),
            what: format!("{what}{}", shape.unwrap_or_default()),
            is_open: false,
        };
        self.add(path, part);
    }
}
