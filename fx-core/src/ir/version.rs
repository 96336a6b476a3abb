//! `Version`: identifies one state of something editable among all of its states.
//!
//! Invariant: equal versions mean equal states. After going back to a version, later changes still
//! get new versions.

use std::sync::atomic::{AtomicU64, Ordering};

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    /// Whose state it is.
    origin: u64,
    at: u64,
}

/// The version of something editable. A clone has its own origin.
#[derive(Debug)]
pub(crate) struct Versions {
    now: Version,
    /// The newest version so far: states that were undone had versions too.
    latest: u64,
}

impl Versions {
    pub fn now(&self) -> Version {
        self.now
    }

    /// Moves to a new state.
    #[inline]
    pub fn advance(&mut self) {
        self.latest += 1;
        self.now.at = self.latest;
    }

    /// Returns to the state of a version.
    pub fn go_back(&mut self, version: Version) {
        self.now = version;
    }
}

impl Default for Versions {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Versions {
            now: Version {
                origin: NEXT.fetch_add(1, Ordering::Relaxed),
                at: 0,
            },
            latest: 0,
        }
    }
}

impl Clone for Versions {
    fn clone(&self) -> Self {
        Versions::default()
    }
}
