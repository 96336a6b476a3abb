//! Files on a disk: written in one step, opened to be read, named in errors.
//!
//! Invariant: a file under its name is always a whole one.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// How many bytes are collected before they go to a file.
const BUFFER: usize = 1 << 18;

/// Writes a file as one step: beside it first, then under its name. Links are followed to the file that they lead to;
/// nothing but a file is replaced.
///
/// # Errors
/// When something else is there, or it cannot be written, and what `write` says; each names the file.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let whole = || -> Result<()> {
        let target = followed(path)?;
        let beside = beside(&target)?;
        let written = create(&beside, write)
            .and_then(|()| fs::rename(&beside, &target).map_err(Error::saved));
        if written.is_err() {
            // What is left of it is of no use; the error that counts is the first.
            let _ = fs::remove_file(&beside);
        }
        written
    };
    whole().map_err(|e| in_file(path, e))
}

/// Writes a file that is not there yet, through to the disk.
pub(crate) fn create(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = File::create_new(path).map_err(Error::saved)?;
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(Error::saved)?;
    file.sync_all().map_err(Error::saved)
}

/// How many links lead to a file at most.
const MAX_LINKS: usize = 40;

/// The file that links lead to, which need not be there yet.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(found) = fs::symlink_metadata(&at) else {
            return Ok(at);
        };
        if found.is_file() {
            return Ok(at);
        }
        if !found.is_symlink() {
            return Err(Error::saved(
                "is there already, and is no file: nothing but a file is replaced",
            ));
        }
        let next = fs::read_link(&at).map_err(Error::saved)?;
        // A link that is not absolute starts in its own folder.
        at = match at.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    Err(Error::saved("is a link that leads in circles"))
}

/// A name in the same folder that nobody else uses.
pub(crate) fn beside(path: &Path) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(Error::saved("is no name of a file"));
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

/// Reads a file; errors of `read` name it.
pub(crate) fn open<T>(path: &Path, read: impl FnOnce(File) -> Result<T>) -> Result<T> {
    let file = File::open(path).map_err(Error::saved);
    file.and_then(read).map_err(|e| in_file(path, e))
}

/// The error with the name of the file.
pub(crate) fn in_file(path: &Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Saved { place, problem } => {
            let place = place.trim_start_matches('.');
            let place = match place.is_empty() {
                true => path.display().to_string(),
                false => format!("{}: {place}", path.display()),
            };
            let problem = problem.clone();
            ErrorKind::Saved { place, problem }.into()
        }
        _ => error.inside(path.display()),
    }
}
