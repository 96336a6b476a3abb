//! The source generated of every case, kept in `tests/generated_source` and compiled with the tests.

use std::path::PathBuf;

use fx_core::{Folder, Result};

use crate::cases::Made;

/// The type of every generated module.
pub const TYPE: &str = "Generated";

/// The source of a case's module.
///
/// # Errors
/// When it calls what a crate cannot name.
pub fn source(made: &Made) -> Result<String> {
    Folder::new(TYPE).source(&made.traced)
}

/// The file that keeps a case's source.
pub fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/generated_source");
    folder.join(format!("{name}.rs"))
}
