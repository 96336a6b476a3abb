//! What a graph module keeps of its last compilation, by the versions that it is of.
//!
//! Invariant: a program runs only at the versions that it was compiled from.

use std::sync::Arc;

use super::around::Around;
use crate::ir::version::Version;
use crate::run::program::Program;
use crate::trace::scope::may_record;

/// The versions of the graph, the modules and the tensors.
pub(super) type Versions = [Version; 3];

/// The versions of what modules and tensors hold.
pub(super) type Contents = [Version; 2];

/// A program, with the versions that it was compiled from.
pub(super) struct KeptProgram {
    pub of: Versions,
    pub program: Program,
    /// What it runs in.
    pub around: Option<Arc<dyn Around>>,
}

/// A program that can be run.
pub(super) enum Ready<'m> {
    Kept(&'m KeptProgram),
    /// Compiled again, because the last edit has not ended.
    Made(Box<Program>),
}

impl Ready<'_> {
    /// What it runs in, on a thread where no trace or mode sees calls.
    pub fn around(&self) -> Option<&dyn Around> {
        match self {
            Ready::Kept(kept) if !may_record() => kept.around.as_deref(),
            _ => None,
        }
    }
}

impl std::ops::Deref for Ready<'_> {
    type Target = Program;
    fn deref(&self) -> &Program {
        match self {
            Ready::Kept(kept) => &kept.program,
            Ready::Made(program) => program,
        }
    }
}
