//! Which nodes of a graph are marked.
//!
//! Invariant: a node beyond the largest marked index is not marked.

/// The marks: a bit per index, up to the largest index that was marked.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    fn place(index: u32) -> (usize, u64) {
        (index as usize / 64, 1 << (index % 64))
    }

    /// Whether no node is marked.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    pub(super) fn has(&self, index: u32) -> bool {
        let (word, bit) = Marks::place(index);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Sets a mark; returns whether it is new.
    pub(super) fn set(&mut self, index: u32) -> bool {
        let (word, bit) = Marks::place(index);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let before = self.0[word];
        self.0[word] |= bit;
        before & bit == 0
    }

    /// Clears a mark; returns whether it was set.
    pub(super) fn clear(&mut self, index: u32) -> bool {
        let (word, bit) = Marks::place(index);
        let Some(bits) = self.0.get_mut(word) else {
            return false;
        };
        let was_there = *bits & bit != 0;
        *bits &= !bit;
        was_there
    }

    pub(super) fn put(&mut self, index: u32, is_set: bool) {
        if is_set {
            self.set(index);
        } else {
            self.clear(index);
        }
    }
}
