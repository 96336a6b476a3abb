//! Where new nodes of a graph go, and where walks over it are.
//!
//! Invariant: each place is a live node, or the end.

/// Where new nodes go, and the points that live guards restore.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// New nodes go before this one; `ROOT`, the default, is the end.
    pub before: u32,
    pub former: Vec<u32>,
    /// The nodes that live walks are at; `ROOT` before the first.
    pub walks: Vec<u32>,
}

impl Cursor {
    /// Called when a node leaves its place: insertion points before it move to the next node, walks
    /// move back to the previous one.
    pub(super) fn leave(&mut self, index: u32, prev: u32, next: u32) {
        for walk in &mut self.walks {
            if *walk == index {
                *walk = prev;
            }
        }
        for point in self.former.iter_mut().chain([&mut self.before]) {
            if *point == index {
                *point = next;
            }
        }
    }
}

impl Clone for Cursor {
    /// A clone has no guards.
    fn clone(&self) -> Self {
        Cursor::default()
    }
}
