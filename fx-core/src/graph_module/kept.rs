//! What a graph module keeps of its last compilation, by the versions that it is of.
//!
//! Invariant: a program runs only at the versions that it was compiled from.

use crate::ir::version::Version;
use crate::run::program::Program;

/// The versions of the graph, the modules and the tensors.
pub(super) type Versions = [Version; 3];

/// The versions of what modules and tensors hold.
pub(super) type Contents = [Version; 2];

/// A program, with the versions that it was compiled from.
pub(super) struct KeptProgram {
    pub of: Versions,
    pub program: Program,
}

/// A program that can be run.
pub(super) enum Ready<'m> {
    Kept(&'m Program),
    /// Compiled again, because the last edit has not ended.
    Made(Box<Program>),
}

impl std::ops::Deref for Ready<'_> {
    type Target = Program;
    fn deref(&self) -> &Program {
        match self {
            Ready::Kept(program) => program,
            Ready::Made(program) => program,
        }
    }
}
