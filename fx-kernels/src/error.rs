//! The error of a kernel that is given the wrong number of floats.

use std::fmt;

/// A slice has another length than the sizes ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeError {
    what: &'static str,
    expected: usize,
    found: usize,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SizeError {
            what,
            expected,
            found,
        } = self;
        write!(f, "{what} has {found} floats where {expected} are needed")
    }
}

impl std::error::Error for SizeError {}

/// An error unless `found` is `expected`.
pub(crate) fn check(what: &'static str, expected: usize, found: usize) -> Result<(), SizeError> {
    match expected == found {
        true => Ok(()),
        false => Err(SizeError {
            what,
            expected,
            found,
        }),
    }
}
