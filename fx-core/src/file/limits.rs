//! What a saved file may be at most, and the errors of what is more.
//!
//! Invariant: whatever recurses over a file's contents is bounded here.

use std::fmt;

use crate::error::{Error, Result};
use crate::ir::argument::MAX_ARGUMENT_DEPTH;

/// The longest header, in bytes: other readers of safetensors have the same limit.
pub(crate) const MAX_HEADER: u64 = 100_000_000;

/// How deep the JSON may nest: far beyond what modules and arguments need, far below what the stack holds.
pub(crate) const MAX_JSON_DEPTH: usize = 512;

/// How deep modules may nest, so that saving and loading may recurse.
pub(crate) const MAX_MODULE_DEPTH: usize = 64;

/// The error of what nests deeper than it may, such as `modules nest`.
pub(crate) fn too_deep(what_nests: impl fmt::Display, most: usize) -> Error {
    Error::saved(format_args!("{what_nests} deeper than {most} levels"))
}

/// Refuses an argument, a structure or an entry at a depth that arguments do not have.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    match depth > MAX_ARGUMENT_DEPTH {
        false => Ok(()),
        true => Err(too_deep("nests", MAX_ARGUMENT_DEPTH)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_limits() {
        let document = include_str!("../../../docs/format.md");
        let limits = [
            format!("| header | {MAX_HEADER} bytes |"),
            format!("| nesting of the JSON | {MAX_JSON_DEPTH} levels |"),
            format!("| nesting of modules | {MAX_MODULE_DEPTH} levels |"),
            format!("| nesting of arguments | {MAX_ARGUMENT_DEPTH} levels |"),
        ];
        for limit in limits {
            assert!(document.contains(&limit), "{limit}");
        }
    }
}
