//! What the command prints.
//!
//! Invariant: what cannot be written is an error of the command, and nothing that ends the process.

use std::fmt;
use std::io::{self, Write};

use fx_nn::prelude::*;
use serde_json::Value as Json;

/// Prints a text as it is.
///
/// # Errors
/// Returns an error if it cannot be written: nobody reads it any more, or the disk is full.
pub fn print(text: impl fmt::Display) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| Error::msg(format_args!("the output cannot be written: {error}")))
}

/// Prints a text and the end of its line.
///
/// # Errors
/// As [`print`].
pub fn line(text: impl fmt::Display) -> Result<()> {
    print(format_args!("{text}\n"))
}

/// Prints JSON.
///
/// # Errors
/// As [`print`].
pub fn json(json: &Json) -> Result<()> {
    line(format_args!("{json:#}"))
}

/// Prints an error beside the output; that it cannot be printed changes nothing.
pub fn error(error: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "error: {error}");
}
