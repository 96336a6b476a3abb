//! `SmallSet`: a set of node indices that does not allocate while it is small, as in most walks
//! between two nodes.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The number of indices that are searched linearly.
const FEW: usize = 8;

/// A set of node indices.
#[derive(Default)]
pub(super) struct SmallSet {
    few: SmallVec<[u32; FEW]>,
    /// All indices, once there are more than `FEW`.
    many: FxHashSet<u32>,
}

impl SmallSet {
    pub fn contains(&self, index: u32) -> bool {
        match self.many.is_empty() {
            true => self.few.contains(&index),
            false => self.many.contains(&index),
        }
    }

    /// Adds an index. Returns `false` if it was already present.
    pub fn insert(&mut self, index: u32) -> bool {
        if self.many.is_empty() {
            if self.few.contains(&index) {
                return false;
            }
            if self.few.len() < FEW {
                self.few.push(index);
                return true;
            }
            self.many.extend(self.few.iter().copied());
        }
        self.many.insert(index)
    }
}

impl FromIterator<u32> for SmallSet {
    fn from_iter<I: IntoIterator<Item = u32>>(indices: I) -> Self {
        let mut set = SmallSet::default();
        for index in indices {
            set.insert(index);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_put_in_however_many() {
        let mut set = SmallSet::default();
        for i in 0..100 {
            assert!(!set.contains(i));
            assert!(set.insert(i));
            assert!(!set.insert(i));
        }
        assert!((0..100).all(|i| set.contains(i)) && !set.contains(100));
    }
}
