//! The order of nodes: a doubly linked list with keys, so that "is a before b" takes constant time.
//!
//! Invariant: along the list, from the sentinel on, keys strictly increase.

use std::num::NonZeroU32;

/// The index of the list's sentinel, which precedes the first node and follows the last.
pub(crate) const ROOT: u32 = 0;

/// The distance between keys of consecutively appended nodes.
const GAP: u64 = 1 << 24;

/// A place in the list.
#[derive(Debug, Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
}

/// The rank of a place. It includes the stamp of the node there, so that checking an id and its
/// order reads one place in memory; the key is split in halves to keep the size at 12 bytes.
#[derive(Debug, Clone, Copy)]
struct Rank {
    high: u32,
    low: u32,
    /// `None` while the place is free, and for the sentinel.
    stamp: Option<NonZeroU32>,
}

impl Rank {
    fn key(self) -> u64 {
        (u64::from(self.high) << 32) | u64::from(self.low)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the halves of a key")]
    fn set_key(&mut self, key: u64) {
        (self.high, self.low) = ((key >> 32) as u32, key as u32);
    }
}

/// The list; it shares the graph's indices.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    links: Vec<Link>,
    ranks: Vec<Rank>,
}

impl Order {
    /// An empty list, with only the sentinel.
    pub fn with_capacity(nodes: usize) -> Self {
        let mut order = Order {
            links: Vec::with_capacity(nodes + 1),
            ranks: Vec::with_capacity(nodes + 1),
        };
        order.grow();
        order
    }

    pub fn next(&self, index: u32) -> u32 {
        self.links[index as usize].next
    }

    pub fn prev(&self, index: u32) -> u32 {
        self.links[index as usize].prev
    }

    /// The key of a node; it increases along the order.
    pub fn key(&self, index: u32) -> u64 {
        self.ranks[index as usize].key()
    }

    /// The stamp of the node at an index, if one is alive there.
    pub fn stamp(&self, index: u32) -> Option<NonZeroU32> {
        self.ranks.get(index as usize)?.stamp
    }

    pub fn set_stamp(&mut self, index: u32, stamp: Option<NonZeroU32>) {
        self.ranks[index as usize].stamp = stamp;
    }

    pub fn is_before(&self, a: u32, b: u32) -> bool {
        self.key(a) < self.key(b)
    }

    /// Adds one more index at the end of the columns.
    pub fn grow(&mut self) {
        self.links.push(Link {
            prev: ROOT,
            next: ROOT,
        });
        self.ranks.push(Rank {
            high: 0,
            low: 0,
            stamp: None,
        });
    }

    /// Removes the last index of the columns, which must not be in the list.
    pub fn shrink(&mut self) {
        self.links.pop();
        self.ranks.pop();
    }

    /// Grows the columns until they contain an index.
    pub fn grow_to(&mut self, index: u32) {
        while self.links.len() <= index as usize {
            self.grow();
        }
    }

    pub fn insert_before(&mut self, index: u32, next: u32) {
        let prev = self.prev(next);
        let key = self.key_between(prev, next);
        self.links[index as usize] = Link { prev, next };
        self.ranks[index as usize].set_key(key);
        debug_assert!(self.key(prev) < key, "keys increase along the order");
        debug_assert!(
            next == ROOT || key < self.key(next),
            "keys increase along the order"
        );
        self.links[prev as usize].next = index;
        self.links[next as usize].prev = index;
    }

    pub fn remove(&mut self, index: u32) {
        let Link { prev, next } = self.links[index as usize];
        debug_assert!(
            self.next(prev) == index && self.prev(next) == index,
            "what is removed is in the list"
        );
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
    }

    fn key_between(&mut self, prev: u32, next: u32) -> u64 {
        let low = self.key(prev);
        if next == ROOT {
            if let Some(key) = low.checked_add(GAP) {
                return key;
            }
            self.spread_all();
            return self.key(prev) + GAP;
        }
        let high = self.key(next);
        if high - low < 2 {
            self.make_room(prev);
            let low = self.key(prev);
            let high = self.key(next);
            return low + (high - low) / 2;
        }
        // A run of insertions at one place takes small steps instead of repeatedly halving the gap.
        low + ((high - low) / 2).min(GAP >> 8)
    }

    /// Spreads the keys around a node evenly over the smallest aligned range that is sparse enough:
    /// classic list labelling, with amortised O(log n) moved keys per insertion.
    fn make_room(&mut self, at: u32) {
        // Nothing precedes the sentinel: make room around the first node instead.
        let at = if at == ROOT { self.next(ROOT) } else { at };
        let key = self.key(at);
        // A range of 2^bits keys may hold (2 / 1.4)^bits nodes, so wider ranges are sparser.
        let mut capacity = 1.0f64;
        for bits in 1..63u32 {
            capacity *= 2.0 / 1.4;
            let size = 1u64 << bits;
            let start = (key & !(size - 1)).max(1);
            let end = (key & !(size - 1)) + (size - 1);
            let mut first = at;
            while self.prev(first) != ROOT && self.key(self.prev(first)) >= start {
                first = self.prev(first);
            }
            let mut count = 0u64;
            let mut index = first;
            while index != ROOT && self.key(index) <= end {
                count += 1;
                index = self.next(index);
            }
            let step = (end - start) / (count + 1);
            if step >= 3 && count as f64 <= capacity {
                // Leave a gap before the first node as well, for insertions before it.
                let mut key = start + step;
                let mut index = first;
                for _ in 0..count {
                    self.ranks[index as usize].set_key(key);
                    key += step;
                    index = self.next(index);
                }
                return;
            }
        }
        self.spread_all();
    }

    /// Rearranges the list; `indices` are all of its nodes.
    pub fn rearrange(&mut self, indices: &[u32]) {
        let mut prev = ROOT;
        for index in indices {
            self.links[prev as usize].next = *index;
            self.links[*index as usize].prev = prev;
            prev = *index;
        }
        self.links[prev as usize].next = ROOT;
        self.links[ROOT as usize].prev = prev;
        self.spread_all();
    }

    fn spread_all(&mut self) {
        let mut key = 0;
        let mut index = self.next(ROOT);
        while index != ROOT {
            key += GAP;
            self.ranks[index as usize].set_key(key);
            index = self.next(index);
        }
    }
}
