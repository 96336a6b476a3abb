//! The limits of a saved file, and the errors for exceeding them.
//!
//! Invariant: everything that recurses over a file's contents is bounded here.

use std::fmt;

use crate::error::{Error, Result};
use crate::ir::argument::MAX_ARGUMENT_DEPTH;

/// The longest header, in bytes: other readers of safetensors have the same limit.
pub(crate) const MAX_HEADER: u64 = 100_000_000;

/// The deepest JSON nesting: far more than modules and arguments need, far less than the stack
/// allows.
pub(crate) const MAX_JSON_DEPTH: usize = 512;

/// The deepest module nesting, so that saving and loading may recurse.
pub(crate) const MAX_MODULE_DEPTH: usize = 64;

/// The error for nesting too deep; `what_nests` is such as `modules nest`.
pub(crate) fn too_deep(what_nests: impl fmt::Display, most: usize) -> Error {
    Error::saved(format_args!("{what_nests} deeper than {most} levels"))
}

/// Rejects an argument, a structure or an entry nested deeper than arguments may be.
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
        let document = include_str!("../../docs/format.md");
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
