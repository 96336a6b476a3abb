//! `Version`: tells a state of something that is edited from every other state that is or was.
//!
//! Invariant: equal versions mean equal states. Going back to a version makes later ones no less new.

use std::sync::atomic::{AtomicU64, Ordering};

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    /// Whose state it is.
    origin: u64,
    at: u64,
}

/// The version of something that is edited. A clone has an origin of its own.
#[derive(Debug)]
pub(crate) struct Versions {
    now: Version,
    /// The newest that there was: states that an edit took back had versions too.
    latest: u64,
}

impl Versions {
    pub fn now(&self) -> Version {
        self.now
    }

    /// There is another state from now on.
    #[inline]
    pub fn advance(&mut self) {
        self.latest += 1;
        self.now.at = self.latest;
    }

    /// The state is the one of a version again.
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
