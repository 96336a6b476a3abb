//! Numbers that are known by name alone, or not at all, outside of any trace.
//!
//! Invariant: equal expressions are one number, so that the table is as large as what is different.

use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::dim::Dim;

/// The indices of numbers of which nothing is known.
const FLOAT: u32 = u32::MAX;
const BOOL: u32 = u32::MAX - 1;

static SIZES: LazyLock<Mutex<IndexSet<Dim, FxBuildHasher>>> = LazyLock::new(Mutex::default);

/// A number that is known by name alone, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FakeNumber {
    /// A whole number.
    Size(Dim),
    Float,
    Bool,
}

impl FakeNumber {
    /// Its index in the table.
    pub(super) fn index(self) -> u32 {
        match self {
            FakeNumber::Float => FLOAT,
            FakeNumber::Bool => BOOL,
            FakeNumber::Size(dim) => {
                let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
                let (index, _) = sizes.insert_full(dim);
                u32::try_from(index).unwrap_or(BOOL - 1)
            }
        }
    }

    /// The number at an index.
    pub(super) fn at(index: u32) -> Option<Self> {
        Some(match index {
            FLOAT => FakeNumber::Float,
            BOOL => FakeNumber::Bool,
            index => {
                let sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
                FakeNumber::Size(sizes.get_index(index as usize)?.clone())
            }
        })
    }
}

impl fmt::Display for FakeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FakeNumber::Size(dim) => dim.fmt(f),
            FakeNumber::Float => f.write_str("a float"),
            FakeNumber::Bool => f.write_str("a bool"),
        }
    }
}
