//! `Items`: what a graph names, by path in insertion order, with a journal to undo open edits.
//!
//! Invariant: only methods of this file make changes, so every change is recorded while an edit is
//! open, and advances the version.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::walk::TensorKind;
use crate::ir::version::{Version, Versions};
use crate::value::value::Value;

type Map<T> = IndexMap<Arc<str>, T, FxBuildHasher>;

/// A thing that can be lent for change in place.
pub trait Item: Clone {
    /// Starts an undoable edit inside it. Returns `false` if it keeps no journal; a copy is then
    /// kept instead.
    #[doc(hidden)]
    fn open_edit(&mut self) -> bool {
        false
    }

    /// Ends the innermost edit inside it, and undoes it unless `keep` is set.
    #[doc(hidden)]
    fn close_edit(&mut self, keep: bool) {
        let _ = keep;
    }
}

impl Item for (TensorKind, Value) {}

/// Things by path, in insertion order.
pub struct Items<T> {
    map: Map<T>,
    edits: Edits<T>,
    version: Versions,
    /// Advances with what is in the things, too: whenever one may have been changed in place.
    contents: Versions,
}

/// The open edits, and what they changed.
struct Edits<T> {
    /// The number of records at the start of each edit.
    starts: Vec<usize>,
    records: Vec<Record<T>>,
    /// What was lent: by path, the number of records at that time.
    lent: FxHashMap<Arc<str>, usize>,
}

impl<T> Edits<T> {
    /// The thing that was lent has been removed.
    fn forget_lent(&mut self, path: &str) {
        if !self.lent.is_empty() {
            self.lent.remove(path);
        }
    }
}

impl<T> Default for Edits<T> {
    fn default() -> Self {
        Edits {
            starts: Vec::new(),
            records: Vec::new(),
            lent: FxHashMap::default(),
        }
    }
}

/// A change, with what is needed to undo it.
enum Record<T> {
    /// Something was added at the end.
    Added,
    /// The thing at a position was replaced.
    Replaced(usize, T),
    /// Things were removed; the positions are the former ones, in order.
    Removed(Vec<(usize, Arc<str>, T)>),
    /// Something was lent; it keeps its own journal, or its original is kept here.
    Lent(Lent<T>),
}

struct Lent<T> {
    path: Arc<str>,
    original: Option<T>,
    /// The value for this path in `Edits::lent` before, if an outer edit lent it.
    before: Option<usize>,
}

/// A state of both kinds of items that an edit can restore.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemsStart {
    depth: usize,
    version: Version,
    contents: Version,
}

impl<T> Items<T> {
    /// The thing at a path.
    pub fn get(&self, path: &str) -> Option<&T> {
        self.map.get(path)
    }

    /// Whether there is anything at a path.
    pub fn contains_key(&self, path: &str) -> bool {
        self.map.contains_key(path)
    }

    /// The number of things.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no things.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The paths.
    pub fn keys(&self) -> indexmap::map::Keys<'_, Arc<str>, T> {
        self.map.keys()
    }

    /// The things.
    pub fn values(&self) -> indexmap::map::Values<'_, Arc<str>, T> {
        self.map.values()
    }

    /// Paths and things.
    pub fn iter(&self) -> indexmap::map::Iter<'_, Arc<str>, T> {
        self.map.iter()
    }

    /// The thing at a path, with the stored path.
    pub(crate) fn get_key_value(&self, path: &str) -> Option<(&Arc<str>, &T)> {
        self.map.get_key_value(path)
    }

    /// The thing at a position, with its path.
    pub(crate) fn get_index(&self, at: usize) -> Option<(&Arc<str>, &T)> {
        self.map.get_index(at)
    }

    /// The thing at a path, with its position and the stored path.
    pub(crate) fn get_full(&self, path: &str) -> Option<(usize, &Arc<str>, &T)> {
        self.map.get_full(path)
    }

    /// The position of a path.
    pub(crate) fn get_index_of(&self, path: &str) -> Option<usize> {
        self.map.get_index_of(path)
    }
}

/// The thing at a position. Panics if there is none, as slices do.
impl<T> Index<usize> for Items<T> {
    type Output = T;
    fn index(&self, at: usize) -> &T {
        &self.map[at]
    }
}

/// The thing at a path. Panics if there is none, as maps do; [`get`](Items::get) does not.
impl<T> Index<&str> for Items<T> {
    type Output = T;
    fn index(&self, path: &str) -> &T {
        &self.map[path]
    }
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Items {
            map: Map::default(),
            edits: Edits::default(),
            version: Versions::default(),
            contents: Versions::default(),
        }
    }
}

impl<T: Clone> Clone for Items<T> {
    /// Clones the things; open edits stay with the original.
    fn clone(&self) -> Self {
        Items {
            map: self.map.clone(),
            ..Items::default()
        }
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.map.keys()).finish()
    }
}

impl<'i, T> IntoIterator for &'i Items<T> {
    type Item = (&'i Arc<str>, &'i T);
    type IntoIter = indexmap::map::Iter<'i, Arc<str>, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.iter()
    }
}

impl<T> IntoIterator for Items<T> {
    type Item = (Arc<str>, T);
    type IntoIter = indexmap::map::IntoIter<Arc<str>, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.into_iter()
    }
}

impl<T: Item> Items<T> {
    /// An empty collection with room for some things.
    pub(crate) fn with_capacity(items: usize) -> Self {
        Items {
            map: Map::with_capacity_and_hasher(items, FxBuildHasher),
            ..Items::default()
        }
    }

    /// Puts a thing at a path, at the end if the path is new. Returns whether the path was taken.
    pub fn insert(&mut self, path: Arc<str>, item: T) -> bool {
        self.advance();
        self.edits.forget_lent(&path);
        let (at, former) = self.map.insert_full(path, item);
        let is_there = former.is_some();
        if self.is_open() {
            let record = match former {
                Some(former) => Record::Replaced(at, former),
                None => Record::Added,
            };
            self.edits.records.push(record);
        }
        is_there
    }

    /// Removes the thing at a path. Returns `false` if there is none.
    pub fn remove(&mut self, path: &str) -> bool {
        let Some((at, path, item)) = self.map.shift_remove_full(path) else {
            return false;
        };
        self.advance();
        self.edits.forget_lent(&path);
        if self.is_open() {
            let record = Record::Removed(vec![(at, path, item)]);
            self.edits.records.push(record);
        }
        true
    }

    /// Removes everything for which `keep` returns `false`. Returns the number removed.
    pub fn retain(&mut self, mut keep: impl FnMut(&Arc<str>, &T) -> bool) -> usize {
        let kept: Vec<bool> = self
            .map
            .iter()
            .map(|(path, item)| keep(path, item))
            .collect();
        let count = kept.iter().filter(|kept| !**kept).count();
        if count == 0 {
            return 0;
        }
        self.advance();
        let mut removed = Vec::with_capacity(count);
        for (at, (path, item)) in std::mem::take(&mut self.map).into_iter().enumerate() {
            if kept[at] {
                self.map.insert(path, item);
            } else {
                self.edits.forget_lent(&path);
                removed.push((at, path, item));
            }
        }
        if self.is_open() {
            self.edits.records.push(Record::Removed(removed));
        }
        count
    }

    /// Lends the thing at a position for change in place. Its signature must stay the same. An open
    /// edit keeps what is needed to undo the change.
    pub(crate) fn lend(&mut self, at: usize) -> Option<(&Arc<str>, &mut T)> {
        self.contents.advance();
        let start = self.edits.starts.last().copied();
        let (path, item) = self.map.get_index_mut(at)?;
        if let Some(start) = start
            && self.edits.lent.get(path).is_none_or(|lent| *lent < start)
        {
            // A copy is lent, so that undoing restores the original object.
            let original = match item.open_edit() {
                true => None,
                false => {
                    let copy = item.clone();
                    Some(std::mem::replace(item, copy))
                }
            };
            let records = self.edits.records.len();
            let before = self.edits.lent.insert(path.clone(), records);
            self.edits.records.push(Record::Lent(Lent {
                path: path.clone(),
                original,
                before,
            }));
        }
        Some((path, item))
    }

    /// Announces that the next lent thing may become a different one, not just get new tensors.
    pub(crate) fn lent_to_change(&mut self) {
        self.advance();
    }

    /// Takes out the thing at a path; only valid while no edit is open.
    pub(crate) fn take(&mut self, path: &str) -> Option<T> {
        debug_assert!(!self.is_open(), "an edit keeps what it removes");
        self.advance();
        self.map.shift_remove(path)
    }

    /// Whether changes are recorded.
    pub(crate) fn is_open(&self) -> bool {
        !self.edits.starts.is_empty()
    }

    /// A version that identifies this state.
    pub(crate) fn version(&self) -> Version {
        self.version.now()
    }

    /// A version that identifies this state, and what is in the things.
    pub(crate) fn contents(&self) -> Version {
        self.contents.now()
    }

    fn advance(&mut self) {
        self.version.advance();
        self.contents.advance();
    }

    /// Starts an edit and returns the state to which [`close_edit`](Items::close_edit) can return;
    /// changes are recorded until it ends.
    pub(crate) fn open_edit(&mut self) -> ItemsStart {
        let depth = self.edits.starts.len();
        self.edits.starts.push(self.edits.records.len());
        ItemsStart {
            depth,
            version: self.version.now(),
            contents: self.contents.now(),
        }
    }

    /// Ends an edit and those inside it, and undoes it unless `keep` is set.
    pub(crate) fn close_edit(&mut self, start: ItemsStart, keep: bool) {
        let Some(records) = self.edits.starts.get(start.depth).copied() else {
            return;
        };
        self.edits.starts.truncate(start.depth);
        if !keep {
            while self.edits.records.len() > records {
                if let Some(record) = self.edits.records.pop() {
                    self.undo(record);
                }
            }
            self.version.go_back(start.version);
            self.contents.go_back(start.contents);
        }
        if start.depth == 0 {
            let edits = std::mem::take(&mut self.edits);
            for record in edits.records {
                if let Record::Lent(lent) = record
                    && lent.original.is_none()
                    && let Some(item) = self.map.get_mut(&lent.path)
                {
                    item.close_edit(true);
                }
            }
        }
    }

    fn undo(&mut self, record: Record<T>) {
        match record {
            Record::Added => drop(self.map.pop()),
            Record::Replaced(at, former) => {
                if let Some((_, item)) = self.map.get_index_mut(at) {
                    *item = former;
                }
            }
            Record::Removed(removed) => match <[_; 1]>::try_from(removed) {
                Ok([(at, path, item)]) => {
                    self.map.shift_insert(at, path, item);
                }
                Err(removed) => {
                    let mut kept = std::mem::take(&mut self.map).into_iter();
                    for (at, path, item) in removed {
                        let missing = at - self.map.len();
                        self.map.extend(kept.by_ref().take(missing));
                        self.map.insert(path, item);
                    }
                    self.map.extend(kept);
                }
            },
            Record::Lent(lent) => {
                match (self.map.get_mut(&lent.path), lent.original) {
                    (Some(item), Some(original)) => *item = original,
                    (Some(item), None) => item.close_edit(false),
                    (None, _) => {}
                }
                match lent.before {
                    Some(before) => self.edits.lent.insert(lent.path, before),
                    None => self.edits.lent.remove(&lent.path),
                };
            }
        }
    }
}
